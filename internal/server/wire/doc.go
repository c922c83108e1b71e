// Package wire reads the JSON of requests, in the order in which it is written, and tells what is wrong
// with a path that a person finds: `messages[0].content is a number, not a string`.
package wire
