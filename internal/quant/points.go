package quant

// Points8 returns the code book of t, an IQ format whose points are of eight values; nil for others.
// It is unpacked at the first call and must not be changed.
func Points8(t Type) [][8]int8 {
	switch t {
	case IQ2XXS:
		return gridIQ2XXS()
	case IQ2XS:
		return gridIQ2XS()
	case IQ2S:
		return gridIQ2S()
	case IQ1S, IQ1M:
		return gridIQ1()
	}
	return nil
}

// Points4 is Points8 for the formats whose points are of four values.
func Points4(t Type) [][4]int8 {
	switch t {
	case IQ3XXS:
		return gridIQ3XXS()
	case IQ3S:
		return gridIQ3S()
	}
	return nil
}
