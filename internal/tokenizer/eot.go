package tokenizer

// endOfTurn are the names of tokens that end a turn, for files that do not say which one does. The order
// is that of likelihood: a model has one of them, or the first counts.
var endOfTurn = []string{
	"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|end_of_turn|>", "<|endofturn|>", "<|return|>",
	"<|eom_id|>", "<|eot|>", "<turn|>", "[EOT]", "<|END_OF_TURN_TOKEN|>", "<｜end▁of▁sentence｜>",
}

// findEOT looks for a control token that ends a turn, unless the file names one, and lets it end answers.
func (t *Tokenizer) findEOT() {
	for _, name := range endOfTurn {
		if t.eot >= 0 {
			break
		}
		if id, ok := t.ID(name); ok && t.IsSpecial(id) {
			t.eot = id
		}
	}
	t.addEOS(t.eot)
}

// addEOS adds an id to those that end an answer.
func (t *Tokenizer) addEOS(id int32) {
	if !t.vocab.has(id) {
		return
	}
	for _, known := range t.eos {
		if known == id {
			return
		}
	}
	t.eos = append(t.eos, id)
}
