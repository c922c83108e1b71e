package main

// generate512 emits the AVX-512 loops of formats512 and of floats.
func generate512() {
	decodePieces("F16", 2, loadF16)
	decodePieces("BF16", 2, loadBF16)
	interleave()
	for n := 1; n <= 6; n++ {
		floatTile512(n)
	}
	for _, f := range formats512 {
		f.pack()
		f.rows()
		f.unpack()
	}
	for n := 1; n <= 4; n++ {
		emitIntTile512(tileKind{run: 32}, n)
		emitIntTile512(tileKind{run: 32, offset: true}, n)
		emitIntTile512(tileKind{run: 16}, n)
		emitIntTile512(tileKind{run: 16, offset: true}, n)
	}
}

// generateWide emits the products with many rows of activations.
func generateWide() {
	for _, run := range []int{32, 16} {
		widen(tileKind{run: run})
		for _, nx := range []int{12, 8, 4, 2, 1} {
			emitWideTile(tileKind{run: run}, nx)
			emitWideTile(tileKind{run: run, offset: true}, nx)
		}
	}
	for _, f := range formats512 {
		if batched[f.name] {
			f.batch()
		}
	}
	batchTwice()
	batchTotals()
}
