/**
 * One set of programs per language, as data. `hello` prints GREETING. `io` prints its arguments joined by `|`, the first
 * line of its input, and writes the line of in.txt with a `!` to out.txt. `two` needs the files beside it and prints 42.
 */
export const GREETING = "héllo 世界 🎉\n";

export interface Programs {
  hello: string;
  io: string;
  crash: { code: string; exit: number; signal?: string; stderr?: string };
  two: { code: string; files: Readonly<Record<string, string>> };
  /** Only of compiled languages: a program that does not compile, and what the compiler says. */
  broken?: { code: string; stderr: RegExp };
}

const text = GREETING.trim();
const NODE_IO = `
const { readFileSync, writeFileSync } = require("node:fs");
console.log(process.argv.slice(2).join("|"));
console.log(readFileSync(0, "utf8").split("\\n")[0]);
writeFileSync("out.txt", readFileSync("in.txt", "utf8").trim() + "!");`;
const SCRIPT = {
  hello: `console.log("${text}")`,
  io: NODE_IO,
  crash: { code: `throw new Error("no way")`, exit: 1, stderr: "no way" },
};
const C_IO = `#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
	char line[100];
	for (int i = 1; i < argc; i++) printf("%s%s", argv[i], i + 1 < argc ? "|" : "\\n");
	fgets(line, sizeof line, stdin);
	printf("%s", line);
	FILE *in = fopen("in.txt", "r"), *out = fopen("out.txt", "w");
	fgets(line, sizeof line, in);
	line[strcspn(line, "\\n")] = 0;
	fprintf(out, "%s!", line);
	return fclose(out);
}`;

export const PROGRAMS: Readonly<Record<string, Programs>> = {
  python: {
    hello: `print("${text}")`,
    io: `import sys
print("|".join(sys.argv[1:]))
print(input())
open("out.txt", "w").write(open("in.txt").read().strip() + "!")`,
    crash: { code: "import os; os.abort()", exit: 134, signal: "SIGABRT" },
    two: {
      code: "from helper import answer; print(answer())",
      files: { "helper.py": "def answer(): return 42" },
    },
  },
  bash: {
    hello: `echo "${text}"`,
    io: `(IFS='|'; echo "$*")
read -r line
echo "$line"
printf '%s!' "$(<in.txt)" >out.txt`,
    crash: { code: "kill -SEGV $$", exit: 139, signal: "SIGSEGV" },
    two: { code: "source ./helper.sh; answer", files: { "helper.sh": "answer() { echo 42; }" } },
  },
  javascript: {
    ...SCRIPT,
    two: {
      code: `import { answer } from "./helper.mjs"; console.log(answer())`,
      files: { "helper.mjs": "export const answer = () => 42;" },
    },
  },
  node: {
    ...SCRIPT,
    two: {
      code: `console.log(require("./helper.js")())`,
      files: { "helper.js": "module.exports = () => 42;" },
    },
  },
  typescript: {
    ...SCRIPT,
    two: {
      code: `import { answer } from "./helper"; const n: number = answer(); console.log(n)`,
      files: { "helper.ts": "export const answer = (): number => 42;" },
    },
  },
  c: {
    hello: `#include <stdio.h>\nint main(void) { puts("${text}"); }`,
    io: C_IO,
    crash: { code: "int main(void) { *(volatile int *)0 = 1; }", exit: 139, signal: "SIGSEGV" },
    two: {
      code: `#include <stdio.h>\n#include "helper.h"\nint main(void) { printf("%d\\n", answer()); }`,
      files: {
        "helper.h": "int answer(void);",
        "helper.c": "int answer(void) { return 42; }",
        "unrelated.c": "int main(void) { return not_even_right; }",
      },
    },
    broken: { code: "int main(void) { return x; }", stderr: /main\.c:1:\d+: error: .*undeclared/ },
  },
  cpp: {
    hello: `#include <iostream>\nint main() { std::cout << "${text}" << std::endl; }`,
    io: C_IO,
    crash: {
      code: `#include <stdexcept>\nint main() { throw std::runtime_error("no way"); }`,
      exit: 134,
      signal: "SIGABRT",
      stderr: "no way",
    },
    two: {
      code: `#include <iostream>\nint answer();\nint main() { std::cout << answer() << "\\n"; }`,
      files: { "helper.cpp": "int answer() { return 42; }" },
    },
    broken: { code: "int main() { return x; }", stderr: /main\.cpp:1:\d+: error: .*not declared/ },
  },
  java: {
    hello: `public class Greeting { public static void main(String[] args) { System.out.println("${text}"); } }`,
    io: `import java.nio.file.*;
import java.util.Scanner;
class Io {
  public static void main(String[] args) throws Exception {
    System.out.println(String.join("|", args));
    System.out.println(new Scanner(System.in).nextLine());
    Files.writeString(Path.of("out.txt"), Files.readString(Path.of("in.txt")).trim() + "!");
  }
}`,
    crash: {
      code: `class Crash { public static void main(String[] a) { throw new IllegalStateException("no way"); } }`,
      exit: 1,
      stderr: "at Crash.main(Main.java:1)",
    },
    two: {
      code: "class Main { public static void main(String[] a) { System.out.println(Helper.answer()); } }",
      files: { "Helper.java": "public class Helper { static int answer() { return 42; } }" },
    },
    broken: { code: "class Main { int x = true; }", stderr: /Main\.java:1: error: incompatible types/ },
  },
  php: {
    hello: `<?php echo mb_substr("${text}?", 0, -1), "\\n";`,
    io: `<?php
echo implode("|", array_slice($argv, 1)), "\\n", fgets(STDIN);
file_put_contents("out.txt", trim(file_get_contents("in.txt")) . "!");`,
    crash: { code: `<?php throw new Exception("no way");`, exit: 255, stderr: "no way" },
    two: {
      code: `<?php require "helper.php"; echo answer(), "\\n";`,
      files: { "helper.php": "<?php function answer() { return 42; }" },
    },
  },
  rust: {
    hello: `fn main() { println!("${text}"); }`,
    io: `use std::{env, fs, io};
fn main() {
    println!("{}", env::args().skip(1).collect::<Vec<_>>().join("|"));
    let mut line = String::new();
    io::stdin().read_line(&mut line).unwrap();
    print!("{line}");
    fs::write("out.txt", fs::read_to_string("in.txt").unwrap().trim().to_owned() + "!").unwrap();
}`,
    crash: { code: `fn main() { panic!("no way"); }`, exit: 101, stderr: "main.rs:1" },
    two: {
      code: `mod helper;\nfn main() { println!("{}", helper::answer()); }`,
      files: { "helper.rs": "pub fn answer() -> i32 { 42 }" },
    },
    broken: { code: "fn main() { let x: i32 = true; }", stderr: /error\[E0308\]: mismatched types/ },
  },
  go: {
    hello: `package main\nimport "fmt"\nfunc main() { fmt.Println("${text}") }`,
    io: `package main
import ("bufio"; "bytes"; "fmt"; "os"; "strings")
func main() {
	fmt.Println(strings.Join(os.Args[1:], "|"))
	line, _ := bufio.NewReader(os.Stdin).ReadString('\\n')
	fmt.Print(line)
	content, _ := os.ReadFile("in.txt")
	os.WriteFile("out.txt", append(bytes.TrimSpace(content), '!'), 0o644)
}`,
    crash: { code: `package main\nfunc main() { panic("no way") }`, exit: 2, stderr: "panic: no way" },
    two: {
      code: `package main\nimport "fmt"\nfunc main() { fmt.Println(answer()) }`,
      files: {
        "helper.go": "package main\nfunc answer() int { return 42 }",
        "unrelated.go": "package main\nfunc main() {}",
      },
    },
    broken: {
      code: "package main\nfunc main() { x := 1 }",
      stderr: /main\.go:2:\d+: declared and not used: x/,
    },
  },
  d: {
    hello: `import std.stdio; void main() { writeln("${text}"); }`,
    io: `import std.stdio, std.array, std.file, std.string;
void main(string[] args) {
	writeln(args[1 .. $].join("|"));
	write(readln());
	std.file.write("out.txt", readText("in.txt").strip ~ "!");
}`,
    crash: { code: `void main() { throw new Exception("no way"); }`, exit: 1, stderr: "no way" },
    two: {
      code: "import std.stdio, helper; void main() { writeln(answer()); }",
      files: { "helper.d": "module helper; int answer() { return 42; }" },
    },
    broken: { code: "void main() { return x; }", stderr: /main\.d\(1\): Error: undefined identifier/ },
  },
  fortran: {
    hello: `program hello\n  print '(a)', "${text}"\nend program`,
    io: `program io
  character(100) :: part
  integer :: i
  do i = 1, command_argument_count()
    call get_command_argument(i, part)
    write (*, '(a)', advance='no') trim(part)
    if (i < command_argument_count()) write (*, '(a)', advance='no') '|'
  end do
  print '(a)', ''
  read (*, '(a)') part
  print '(a)', trim(part)
  open (10, file='in.txt')
  read (10, '(a)') part
  open (11, file='out.txt', access='stream', form='unformatted')
  write (11) trim(part) // '!'
end program`,
    crash: { code: "program crash\n  error stop 3\nend program", exit: 3, stderr: "ERROR STOP 3" },
    two: {
      code: "program main\n  use helper\n  print '(i0)', answer()\nend program",
      files: {
        "helper.f90":
          "module helper\ncontains\n  integer function answer()\n    answer = 42\n  end function\nend module",
      },
    },
    broken: {
      code: "program main\n  implicit none\n  x = 1\nend program",
      stderr: /main\.f90:3:\d+:[\s\S]*Error: Symbol .x. at \(1\) has no IMPLICIT type/,
    },
  },
  r: {
    hello: `cat("${text}\\n")`,
    io: `cat(paste(commandArgs(TRUE), collapse = "|"), "\\n", sep = "")
cat(readLines(file("stdin"), n = 1), "\\n", sep = "")
cat(readLines("in.txt"), "!", sep = "", file = "out.txt")`,
    crash: { code: `stop("no way")`, exit: 1, stderr: "no way" },
    two: {
      code: `source("helper.R"); cat(answer(), "\\n", sep = "")`,
      files: { "helper.R": "answer <- function() 42" },
    },
  },
};
