// Reads the output of a program that writes late, while other goroutines wait for a channel.
package main

import (
	"fmt"
	"os"
	"os/exec"
)

func main() {
	output := make(chan []byte)
	go func() {
		text, err := exec.Command("sh", "-c", "sleep "+os.Args[1]+"; echo done").Output()
		if err != nil {
			panic(err)
		}
		output <- text
	}()
	fmt.Print(string(<-output))
}
