package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	wideRegister   = regexp.MustCompile(`\b[YZ]([0-9]|[12][0-9]|3[01])\b`)
	vectorRegister = regexp.MustCompile(`\b[XYZ]([0-9]|[12][0-9]|3[01])\b`)
	asmFunction    = regexp.MustCompile(`^TEXT\s+([^\s(]+)\(SB\)`)
	asmLabel       = regexp.MustCompile(`^\s*[A-Za-z_][A-Za-z0-9_]*:\s*`)
)

// instruction is one line of a function in Go's assembly.
type instruction struct {
	line     int
	op       string
	operands string
	labelled bool
}

// asmFindings checks amd64 assembly: in a function that touches Y or Z registers, every
// instruction on a vector register is VEX- or EVEX-encoded (legacy SSE would wait for the upper
// halves each time), and VZEROUPPER stands right before every way out.
func asmFindings(name, text string) []finding {
	var out []finding
	function, body := "", []instruction(nil)
	flush := func() {
		out = append(out, functionFindings(name, function, body)...)
		body = nil
	}
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "//")
		if m := asmFunction.FindStringSubmatch(line); m != nil {
			flush()
			function = m[1]
			continue
		}
		for part := range strings.SplitSeq(line, ";") {
			if ins, ok := parseInstruction(part, i+1); ok {
				body = append(body, ins)
			}
		}
	}
	flush()
	return out
}

// parseInstruction splits a line; a label alone is an instruction without a name.
func parseInstruction(text string, line int) (instruction, bool) {
	ins := instruction{line: line}
	if label := asmLabel.FindString(text); label != "" {
		ins.labelled = true
		text = text[len(label):]
	}
	text = strings.TrimSpace(text)
	if text == "" || strings.HasPrefix(text, "#") {
		return ins, ins.labelled
	}
	ins.op, ins.operands, _ = strings.Cut(strings.ReplaceAll(text, "\t", " "), " ")
	return ins, true
}

func functionFindings(file, function string, body []instruction) []finding {
	wide := false
	for _, ins := range body {
		wide = wide || wideRegister.MatchString(ins.operands)
	}
	if !wide {
		return nil
	}
	var out []finding
	bad := func(ins instruction, what string) {
		out = append(out, finding{fmt.Sprintf("%s:%d", file, ins.line), function + ": " + what})
	}
	for i, ins := range body {
		if vectorRegister.MatchString(ins.operands) && !strings.HasPrefix(ins.op, "V") {
			bad(ins, ins.op+" is legacy SSE in a function that uses Y or Z registers")
		}
		leaves := ins.op == "RET" || (ins.op == "JMP" && strings.Contains(ins.operands, "(SB)"))
		if leaves && (i == 0 || body[i-1].op != "VZEROUPPER" || ins.labelled) {
			bad(ins, ins.op+" without VZEROUPPER right before it")
		}
	}
	return out
}

func TestAssembly(t *testing.T) {
	root, files := repoFiles(t)
	for _, name := range files {
		if !strings.HasSuffix(name, "_amd64.s") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		report(t, asmFindings(name, string(text)))
	}
}

func TestAssemblySelf(t *testing.T) {
	const bad = `#include "textflag.h"

// func f(x *float32)
TEXT ·f(SB), NOSPLIT, $0-8
	MOVQ    x+0(FP), AX
	VMOVUPS (AX), Y0
	MOVSS   X1, (AX)
	CMPQ    AX, $8
	JE      done
	VZEROUPPER
	RET
loop:
	VZEROUPPER
done:
	RET

TEXT ·narrow(SB), NOSPLIT, $0-8
	MOVSS X1, (AX)
	RET

TEXT ·tail(SB), NOSPLIT, $0-8
	VMOVUPS (AX), Z17; MOVQ X3, BX
	JMP ·narrow(SB)
`
	wantFindings(t, asmFindings("bad_amd64.s", bad),
		"bad_amd64.s:7: ·f: MOVSS", "bad_amd64.s:15: ·f: RET", "MOVQ is legacy", "JMP without")
	const good = `TEXT ·g(SB), NOSPLIT, $0-8
	VPXOR Y0, Y0, Y0 // MOVSS X0 in a comment
	VMOVD X0, AX
next:
	VZEROUPPER
	RET
`
	wantFindings(t, asmFindings("good_amd64.s", good))
}
