// Command neon generates the NEON loops. From internal/kernel/gen:
//
//	go run ./neon -out ../neon_arm64.s -stubs ../neon_stub_arm64.go -pkg kernel
//
// Go's assembler lacks many vector instructions, so all of them are written as words, each with its text
// beside it; a test decodes the words and compares.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	out := flag.String("out", "", "file for the assembly")
	stubs := flag.String("stubs", "", "file for the declarations")
	pkg := flag.String("pkg", "kernel", "package of the declarations")
	flag.Parse()
	a := generate()
	for _, f := range []struct {
		name string
		data []byte
	}{{*out, a.assembly()}, {*stubs, a.declarations(*pkg)}} {
		if err := os.WriteFile(f.name, f.data, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func generate() *asm {
	a := new(asm)
	a.pause()
	a.prefetch()
	for _, f := range floatLoads {
		a.floatRows(f)
		a.decodeRow(f)
	}
	for n := 1; n <= 3; n++ {
		a.floatTile(n)
	}
	for _, k := range []tileKind{{run: 32}, {run: 32, offset: true}, {run: 16}, {run: 16, offset: true}} {
		for n := 1; n <= 2; n++ {
			a.intTile(k, n)
		}
	}
	a.quantize()
	for _, f := range formats {
		a.intRows(f)
		a.unpack(f)
	}
	a.elementwise()
	a.attention()
	return a
}
