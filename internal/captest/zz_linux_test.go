package captest_test

import (
	"fmt"
	"testing"
	"os"
	"strings"
)

func TestZZ(t *testing.T) {
	bin := needProgram(t)
	c := capCase{bin: bin, model: "/work/models/smollm2-135m-instruct-q4_1/SmolLM2-135M-Instruct.Q4_1.gguf", prompt: "The capital of France is", context: 512, tokens: 12}
	if os.Getenv("ZZBIG") != "" {
		c = capCase{bin: bin, model: "/work/models/tinyllama-1.1b-f16.gguf", prompt: "Once upon a time", context: 128, tokens: 3}
	}
	free := c.survivor(t, 64<<30, 0)
	least, weights := free.report.Memory.Least, free.report.Model.WeightBytes
	t.Logf("least %s weights %s", size(least), size(weights))
	for _, memory := range []int64{least, 2 * least, least + weights/2, least + weights} {
		t.Run(fmt.Sprintf("memory=%dMiB", memory/mib), func(t *testing.T) {
			c.checkBudget(t, memory, free.report.IDs)
		})
	}
	t.Run("below", func(t *testing.T) { c.checkRefusal(t, least) })
	t.Run("slack", func(t *testing.T) { c.checkSlack(t, least) })
	_ = strings.Join
}
