/** One program per language that adds 0 to 7 in eight threads or processes, prints 28, and starts a command that prints child. */

const NODE = `
const { Worker } = require("node:worker_threads"), { execFileSync } = require("node:child_process");
const sum = (numbers) => numbers.reduce((a, b) => a + b);
const worker = (n) => new Promise((resolve) => new Worker("require('node:worker_threads').parentPort.postMessage(" + n + ")", { eval: true }).on("message", resolve));
Promise.all([...Array(8).keys()].map(worker)).then((all) => console.log(sum(all) + "\\n" + String(execFileSync("echo", ["child"])).trim()));`;

export const PARALLEL: Readonly<Record<string, string>> = {
  python: `
import multiprocessing, subprocess
with multiprocessing.Pool(8) as pool: print(sum(pool.map(abs, range(8))), flush=True)
subprocess.run(["echo", "child"])`,
  bash: `for i in {0..7}; do (echo $i) & done | awk '{ s += $1 } END { print s }'; $(command -v echo) child`,
  javascript: NODE,
  typescript: NODE,
  node: NODE,
  c: `
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static int sum;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *add(void *n)
{
	pthread_mutex_lock(&lock);
	sum += (int)(long)n;
	pthread_mutex_unlock(&lock);
	return NULL;
}
int main(void)
{
	pthread_t threads[8];
	for (long i = 0; i < 8; i++) pthread_create(&threads[i], NULL, add, (void *)i);
	for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
	printf("%d\\n", sum);
	fflush(stdout);
	return system("echo child");
}`,
  cpp: `
#include <cstdlib>
#include <future>
#include <iostream>
#include <vector>
int main()
{
	std::vector<std::future<int>> parts;
	for (int i = 0; i < 8; i++) parts.push_back(std::async(std::launch::async, [i] { return i; }));
	int sum = 0;
	for (auto &part : parts) sum += part.get();
	std::cout << sum << std::endl;
	return std::system("echo child");
}`,
  java: `
import java.util.*;
import java.util.concurrent.*;
class Main {
  public static void main(String[] args) throws Exception {
    var pool = Executors.newFixedThreadPool(8);
    var parts = new ArrayList<Future<Integer>>();
    for (int i = 0; i < 8; i++) { int n = i; parts.add(pool.submit(() -> n)); }
    int sum = 0;
    for (var part : parts) sum += part.get();
    pool.shutdown();
    System.out.println(sum);
    System.exit(new ProcessBuilder("echo", "child").inheritIO().start().waitFor());
  }
}`,
  php: `<?php
$sum = 0;
for ($i = 0; $i < 8; $i++) {
  $pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
  if (pcntl_fork() === 0) { fwrite($pair[0], $i); exit; }
  fclose($pair[0]);
  $pairs[] = $pair[1];
}
foreach ($pairs as $end) $sum += (int) stream_get_contents($end);
while (pcntl_wait($status) > 0);
echo "$sum\\n";
passthru("echo child");`,
  rust: `
use std::{process::Command, sync::{Arc, Mutex}, thread};
fn main() {
    let sum = Arc::new(Mutex::new(0));
    let threads: Vec<_> = (0..8).map(|n| { let sum = sum.clone(); thread::spawn(move || *sum.lock().unwrap() += n) }).collect();
    for thread in threads { thread.join().unwrap(); }
    println!("{}", sum.lock().unwrap());
    assert!(Command::new("echo").arg("child").status().unwrap().success());
}`,
  go: `
package main
import ("fmt"; "os"; "os/exec"; "sync"; "sync/atomic")
func main() {
	var sum int64
	var group sync.WaitGroup
	for i := 0; i < 8; i++ {
		group.Add(1)
		go func(n int64) { atomic.AddInt64(&sum, n); group.Done() }(int64(i))
	}
	group.Wait()
	fmt.Println(sum)
	command := exec.Command("echo", "child")
	command.Stdout = os.Stdout
	if err := command.Run(); err != nil { panic(err) }
}`,
  d: `
import core.atomic, std.parallelism, std.process, std.range, std.stdio;
void main()
{
	shared int sum;
	auto pool = new TaskPool(8);
	foreach (n; pool.parallel(iota(8), 1)) atomicOp!"+="(sum, n);
	pool.finish(true);
	writeln(sum.atomicLoad);
	stdout.flush();
	wait(spawnProcess(["echo", "child"]));
}`,
  fortran: `
program parallel
  integer :: i, parts(0:7), status
  do concurrent (i = 0:7)
    parts(i) = i
  end do
  print '(i0)', sum(parts)
  flush (6)
  call execute_command_line('echo child', exitstat=status)
  if (status /= 0) error stop
end program`,
  r: `
cat(sum(unlist(parallel::mclapply(0:7, identity, mc.cores = 8))), "\\n", sep = "")
system2("echo", "child")`,
};
