package main

// predictionFlag is --prediction of the commands that run a model.
type predictionFlag struct {
	Prediction string `help:"Read experts that a layer will probably need while the drive is idle: on, off, or auto, until it measures as a loss. It never changes a result." enum:"auto,on,off" default:"auto"`
}
