// Rates prints what a sum is in another currency.
package main

import "fmt"

// convert gives back the sum in cents, rounded down.
func convert(cents, rate int) int {
	return cents * rate / 1000
}

func main() {
	fmt.Println(convert(1999, 1087))
}
