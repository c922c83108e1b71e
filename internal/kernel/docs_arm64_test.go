package kernel

func docSets() []docSet { return []docSet{{name: "NEON", ops: &neonMatmul}} }
