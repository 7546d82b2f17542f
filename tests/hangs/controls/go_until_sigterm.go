// Idles until SIGTERM: a goroutine then closes the input for which its child waits.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func main() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	program := exec.Command("cat")
	input, err := program.StdinPipe()
	if err != nil {
		panic(err)
	}
	if err := program.Start(); err != nil {
		panic(err)
	}
	go func() {
		<-asked
		input.Close()
	}()
	fmt.Println("ready", os.Getpid())
	if err := program.Wait(); err != nil {
		panic(err)
	}
	fmt.Println("done")
}
