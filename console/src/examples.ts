import { HELLO } from "../../packages/contracts/src/hello-programs.ts";

/** The program that the editor shows first for each language. */
export const EXAMPLES: Readonly<Record<string, string>> = {
  ...HELLO,
  python: `import time

for number in range(1, 6):
    print("square of", number, "is", number**2)
    time.sleep(0.3)
`,
  javascript: `const words = ["output", "comes", "while", "it", "runs"];
for (const word of words) {
  console.log(word);
  await new Promise((done) => setTimeout(done, 300));
}
`,
  bash: `for number in 1 2 3; do
  echo "line $number"
  sleep 0.3
done
echo "name,size" > table.csv
`,
};
