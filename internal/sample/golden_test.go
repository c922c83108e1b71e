package sample

// Draws and bits of TestGoldenSteps.
const goldenLogProb = 0xc072e889

var (
	goldenTypical   = []int{27, 98, 38, 46, 46, 98, 5, 98, 87, 57, 98, 27}
	goldenXTC       = []int{5, 98, 35, 35, 35, 95, 5, 98, 95, 57, 98, 35}
	goldenMirostat  = []int{27, 98, 32, 49, 49, 95, 5, 98, 90, 51, 98, 30}
	goldenPenalties = []int{90, 19, 49, 30, 79, 60, 8, 38, 68, 98, 27, 57}
	goldenDRY       = []int{60, 60, 60, 60, 60, 60, 90, 60, 60, 60, 60, 60}
)
