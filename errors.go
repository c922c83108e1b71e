package spillway

import (
	"github.com/spillway/spillway/internal/budget"
	"github.com/spillway/spillway/internal/checkpoint"
	"github.com/spillway/spillway/internal/engine"
	"github.com/spillway/spillway/internal/models"
	"github.com/spillway/spillway/internal/nn"
	"github.com/spillway/spillway/internal/plan"
)

// Errors that a caller may want to tell apart, by errors.As.
type (
	// TooSmallError says that the memory does not do, and how much would.
	TooSmallError = plan.TooSmallError
	// NoRoomError says that the ledger has no room, and who holds the rest.
	NoRoomError = budget.NoRoomError
	// TooLongError says that a prompt and its answer do not fit in the context.
	TooLongError = engine.TooLongError
	// QueueFullError says that as many requests wait as may, and when to try again.
	QueueFullError = engine.QueueFullError
	// DeadlineError says that a request's time was up, and how far it came.
	DeadlineError = engine.DeadlineError
	// FormatError says that a file is damaged or not supported.
	FormatError = checkpoint.FormatError
	// ConfigError says what is wrong with a model's configuration.
	ConfigError = models.ConfigError
	// CacheRangeError says that a key or value is beyond what the cache's type can hold.
	CacheRangeError = nn.CacheRangeError
)
