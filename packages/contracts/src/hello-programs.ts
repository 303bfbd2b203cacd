/** A program in every language that prints "hello" and a line end. */

const PRINT = `console.log("hello")`;
/** The keys are runner names. */
export const HELLO: Readonly<Record<string, string>> = {
  python: `print("hello")`,
  bash: "echo hello",
  javascript: PRINT,
  typescript: PRINT,
  node: PRINT,
  c: `#include <stdio.h>\nint main(void) { puts("hello"); }`,
  cpp: `#include <iostream>\nint main() { std::cout << "hello\\n"; }`,
  java: `class Main { public static void main(String[] args) { System.out.println("hello"); } }`,
  php: `<?php echo "hello\\n";`,
  rust: `fn main() { println!("hello"); }`,
  go: `package main\nimport "fmt"\nfunc main() { fmt.Println("hello") }`,
  d: `import std.stdio; void main() { writeln("hello"); }`,
  fortran: `program hello\nprint '(a)', 'hello'\nend program`,
  r: `cat("hello\\n")`,
};
