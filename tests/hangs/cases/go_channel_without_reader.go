// Sends to a channel that no goroutine reads. Go does not find that itself, because another goroutine waits for a pipe.
package main

import "os"

func main() {
	reader, writer, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	go reader.Read(make([]byte, 1))
	results := make(chan int)
	results <- 1 // hangs here
	writer.Close()
}
