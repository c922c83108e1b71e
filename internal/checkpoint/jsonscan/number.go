package jsonscan

import "strconv"

// Float reads a number; one that no float64 is near is damaged.
func (s *Scanner) Float() (float64, error) {
	if _, err := s.Peek(); err != nil {
		return 0, err
	}
	word, err := s.word()
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseFloat(string(word), 64)
	if err != nil {
		return 0, s.fail("%q is not a number", word)
	}
	return v, nil
}
