import { Jaild } from "@svc/test-kit/jail/jaild";
import { runPython, type Way } from "@svc/test-kit/jail/warm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PROGRAMS } from "../support/python-programs.ts";
import { PRELUDE } from "../support/session.ts";

let jaild: Jaild;
beforeAll(async () => {
  jaild = await Jaild.start({ slots: 4, zygotes: true });
  await jaild.warm();
});
afterAll(() => jaild.stop());

const shown = ({ out, err, files, ...way }: Way) => {
  const { ".session_state.pkl": _saved, ...others } = files;
  const withoutAddresses = (text: string) => text.replaceAll(/0x[0-9a-f]{6,}/g, "0x");
  return { ...way, out: withoutAddresses(out), err: withoutAddresses(err), files: others };
};

const FRAMES = "four frames lie below the program";
const WORDS = "compile() words it in another way than the interpreter, which reads a file";
const OBJECTS = "pickling makes objects, which the collector and classes of the program can see";
/** Programs that can tell, and by what. */
const DIFFERENT: Record<string, string> = {
  "its arguments and paths": "the kernel shows the prelude where the program starts cold",
  "what a program that ran before would have left": FRAMES,
  "recursion: how deep, and its error": FRAMES,
  "recursion that its end goes on with": FRAMES,
  "frames: nothing is below the program": FRAMES,
  "no hook for exceptions": FRAMES,
  "an exception in a hook for exceptions": "the hook is called by another one, which hides the frames",
  "an unknown encoding": WORDS,
  "a NUL in the source": WORDS,
  "both streams are closed, and an exception is uncaught": "it counts references",
  "a collector that is watched": OBJECTS,
  "a function that the collector calls": OBJECTS,
  "a function of the library that the collector calls": OBJECTS,
  "a class whose metaclass has a hash": OBJECTS,
  "finalizers of objects of another module": "they run in another order",
};

describe("a program of a session behaves as a plain one", () => {
  it.each(Object.entries(PROGRAMS).filter(([name]) => !(name in DIFFERENT)))("%s", async (_name, job) => {
    const argv = job.argv ?? ["main.py"];
    const [plain, cold, warm] = await Promise.all([
      runPython(jaild, undefined, job),
      runPython(jaild, undefined, { ...job, argv: [PRELUDE, ...argv] }),
      runPython(jaild, "python-standard", { ...job, argv: [PRELUDE, ...argv] }),
    ]);
    const { startedWarm: _plain, ...expected } = plain;
    for (const { startedWarm: _warm, ...way } of [cold, warm]) expect(shown(way)).toEqual(shown(expected));
  });

  it("or is one of those whose differences are known", () => {
    expect(Object.keys(DIFFERENT).filter((name) => !(name in PROGRAMS))).toEqual([]);
  });
});
