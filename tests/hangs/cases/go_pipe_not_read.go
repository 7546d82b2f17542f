// Waits for a program whose output it does not read. Go's runtime handles nearly all signals in every program.
package main

import (
	"fmt"
	"os/exec"
)

func main() {
	program := exec.Command("head", "-c", "1000000", "/dev/zero")
	if _, err := program.StdoutPipe(); err != nil {
		panic(err)
	}
	if err := program.Start(); err != nil {
		panic(err)
	}
	fmt.Println(program.Process.Wait()) // hangs here
}
