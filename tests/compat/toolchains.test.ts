/** Compilers inside of a run: programs that write sources into the workspace, build them there and run what they built. */

import { Api } from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, expect, test } from "vitest";

let system: System;
let api: Api;

beforeAll(async () => {
  system = await startSystem({ env: { ...OPEN_LIMITS, SVC_LANGUAGES: "all" } });
  api = new Api(system.url);
});

afterAll(async () => {
  expect(await system.stop()).toEqual([]);
});

interface Build {
  script: string;
  stdout: string;
}

const BUILDS: Readonly<Record<string, Build>> = {
  "make, gcc, ar and a shared library": {
    script: `
mkdir src && printf 'int twice(int n) { return 2 * n; }' >src/twice.c
printf '#include <stdio.h>\\nint twice(int);\\nint main(void) { printf("%%d\\\\n", twice(21)); }' >src/main.c
cat >Makefile <<'END'
program: src/main.o libtwice.a
	$(CC) -o $@ $^
libtwice.a: src/twice.o
	$(AR) rcs $@ $^
libtwice.so: src/twice.c
	$(CC) -shared -fPIC -o $@ $<
END
make -s program libtwice.so && ./program && python3 -c 'import ctypes; print(ctypes.CDLL("./libtwice.so").twice(4))'`,
    stdout: "42\n8\n",
  },
  "g++ with optimisation, debug information and sanitizers": {
    script: `
cat >a.cpp <<'END'
#include <iostream>
#include <map>
int main(int argc, char **) { std::map<int, int> m{{1, 2}}; std::cout << m.at(argc) << std::endl; return m.count(7); }
END
g++ -std=c++20 -O3 -flto -g -Wall -Wextra -o a a.cpp 2>&1 && ./a && strip a && ./a
g++ -fsanitize=undefined -o b a.cpp && ./b`,
    stdout: "2\n2\n2\n",
  },
  "javac, jar and java": {
    script: `
mkdir -p org/example && echo 'package org.example; public class Hello { public static void main(String[] a) { System.out.println("hello " + a[0]); } }' >org/example/Hello.java
javac -d classes org/example/Hello.java && java -cp classes org.example.Hello classes
jar --create --file hello.jar --main-class org.example.Hello -C classes . && java -jar hello.jar jar
java org/example/Hello.java source`,
    stdout: "hello classes\nhello jar\nhello source\n",
  },
  "rustc: a library, a program and its tests": {
    script: `
echo 'pub fn twice(n: i32) -> i32 { 2 * n } #[test] fn works() { assert_eq!(twice(2), 4); }' >twice.rs
echo 'fn main() { println!("{}", twice::twice(21)); }' >main.rs
rustc --crate-type=rlib twice.rs && rustc --edition=2021 -O -L . --extern twice main.rs && ./main && rustc --test twice.rs -o tests && ./tests -q | grep -c 'test result: ok. 1 passed'; rm main tests`,
    stdout: "42\n1\n",
  },
  "go: a module, run, build, vet and test": {
    script: `
mkdir twice && printf 'package twice\\nfunc Twice(n int) int { return 2 * n }\\n' >twice/twice.go
printf 'package twice\\nimport "testing"\\nfunc TestTwice(t *testing.T) { if Twice(2) != 4 { t.Fail() } }\\n' >twice/twice_test.go
printf 'package main\\nimport "example.org/it/twice"\\nfunc main() { println(twice.Twice(21)) }\\n' >main.go
go mod init example.org/it 2>/dev/null && go run . 2>&1 && go build -o program . && ./program 2>&1 && go vet ./... && go test ./... 2>&1 | grep -c '^ok'`,
    stdout: "42\n42\n1\n",
  },
  "ldc2, gfortran, php and Rscript from the shell": {
    script: `
echo 'import std.stdio; void main() { writeln("d"); }' >a.d && ldc2 -of=d a.d && ./d
printf "program a\\n  print '(a)', 'fortran'\\nend program\\n" >a.f90 && gfortran -o f a.f90 && ./f
php -r 'echo json_encode(["php" => PHP_MAJOR_VERSION > 7]), "\\n";' && Rscript -e 'cat("r\\n")'`,
    stdout: 'd\nfortran\n{"php":true}\nr\n',
  },
};

test.each(Object.entries(BUILDS))("%s", async (_name, { script, stdout }) => {
  const answer = await api.exec({ lang: "bash", code: `set -e\n${script}` });
  expect(answer).toMatchObject({ stderr: "", stdout, code: 0, status: null });
});
