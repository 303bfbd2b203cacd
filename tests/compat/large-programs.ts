/** Programs that need much of their language's library: what costs compilers the most time, memory and scratch space. */

export const LARGE: Readonly<Record<string, { code: string; stdout: string }>> = {
  cpp: {
    code: `
#include <bits/stdc++.h>
int main()
{
	std::regex word("[a-z]+");
	std::string text = "two words";
	auto begin = std::sregex_iterator(text.begin(), text.end(), word);
	std::vector<int> numbers(100);
	std::iota(numbers.begin(), numbers.end(), 0);
	auto even = numbers | std::views::filter([](int n) { return n % 2 == 0; }) | std::views::take(3);
	int sum = 0;
	for (int n : even) sum += n;
	std::cout << std::distance(begin, {}) << sum << std::filesystem::current_path() << "\\n";
}`,
    stdout: '26"/mnt/data"\n',
  },
  go: {
    code: `
package main
import ("crypto/sha256"; "database/sql"; "encoding/json"; "encoding/xml"; "fmt"; "html/template"; "image/png"; "net/http"; "net/http/httptest"; "os"; "regexp")
var _, _, _ = sql.Open, xml.Marshal, png.Encode
func main() {
	recorder := httptest.NewRecorder()
	http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		json.NewEncoder(w).Encode(map[string]string{"path": r.URL.Path})
	}).ServeHTTP(recorder, httptest.NewRequest("GET", "/x", nil))
	template.Must(template.New("t").Parse("<b>{{.}}</b>\\n")).Execute(os.Stdout, "a&b")
	fmt.Print(recorder.Body.String())
	fmt.Printf("%x %v\\n", sha256.Sum256(nil), regexp.MustCompile("b+").FindString("abbc"))
}`,
    stdout: `<b>a&amp;b</b>\n{"path":"/x"}\ne3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 bb\n`,
  },
  java: {
    code: `
import java.net.http.HttpClient;
import java.time.*;
import java.util.*;
import java.util.stream.*;
import javax.xml.parsers.*;
public class Report {
  record Sale(String shop, double sum) {}
  sealed interface Shape permits Circle, Square {}
  record Circle(double r) implements Shape {}
  record Square(double a) implements Shape {}
  public static void main(String[] args) throws Exception {
    var sales = List.of(new Sale("a", 1.5), new Sale("b", 2), new Sale("a", 3));
    var sums = sales.stream().collect(Collectors.groupingBy(Sale::shop, TreeMap::new, Collectors.summingDouble(Sale::sum)));
    var document = DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(new java.io.ByteArrayInputStream("<a b='c'/>".getBytes()));
    System.out.println(sums + " " + LocalDate.of(2026, 1, 31).plusMonths(1) + " " + document.getDocumentElement().getAttribute("b"));
    System.out.println(HttpClient.class.getSimpleName() + " " + String.format("%,.2f", 1234567.891) + " " + "x".repeat(3).matches("x{3}"));
  }
}`,
    stdout: "{a=4.5, b=2.0} 2026-02-28 c\nHttpClient 1,234,567.89 true\n",
  },
  rust: {
    code: `
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Debug;
trait Area: Debug { fn area(&self) -> f64; }
#[derive(Debug, Clone, PartialEq, PartialOrd)] struct Square(f64);
impl Area for Square { fn area(&self) -> f64 { self.0 * self.0 } }
fn main() {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for word in "a b a".split_whitespace() { *counts.entry(word).or_default() += 1; }
    let sorted: BTreeMap<_, _> = counts.into_iter().collect();
    let shapes: Vec<Box<dyn Area>> = (1..4).map(|n| Box::new(Square(n as f64)) as Box<dyn Area>).collect();
    let unique: HashSet<u64> = (0..100_000u64).map(|n| n * n % 1000).collect();
    println!("{sorted:?} {} {}", shapes.iter().map(|s| s.area()).sum::<f64>(), unique.len());
}`,
    stdout: `{"a": 2, "b": 1} 14 159\n`,
  },
  d: {
    code: `
import std.algorithm, std.array, std.conv, std.datetime, std.format, std.json, std.range, std.regex, std.stdio, std.string;
void main()
{
	auto words = "two words".matchAll(regex("[a-z]+")).map!(m => m.hit.toUpper).array;
	auto json = parseJSON(\`{"a": [1, 2.5]}\`);
	writeln(words, json["a"][1], format("%05.1f", iota(10).filter!(n => n % 2).map!(n => n ^^ 2).sum.to!double));
	writeln(Date(2026, 1, 31).add!"months"(1, AllowDayOverflow.no));
}`,
    stdout: `["TWO", "WORDS"]2.5165.0\n2026-Feb-28\n`,
  },
};
