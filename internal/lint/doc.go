// Package lint holds tests alone: the rules of the house that a compiler does not check. Import
// arrows point down, dependencies are the chosen ones, float arithmetic has one meaning on every
// machine, assembly keeps to VEX, and the repository stays small and speaks of the product only.
// Every rule has a self-test on a small sample that it must reject.
package lint
