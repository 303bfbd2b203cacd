/** Shows the output of a run. If it is too long, shows a part, says how much, and offers all of it for download. */
import { useEffect, useRef, useState } from "preact/hooks";
import { save } from "./files.tsx";
import type { Output } from "./output.ts";

const numbered = (count: number) => count.toLocaleString("en");

export function OutputView({ output, isRunning }: { output: Output; isRunning: boolean }) {
  const place = useRef<HTMLPreElement>(null);
  const [isCut, setCut] = useState(false);
  useEffect(() => {
    if (place.current !== null) output.showIn(place.current, () => setCut(true));
  }, [output]);
  useEffect(() => {
    if (isRunning) setCut(false);
  }, [isRunning]);
  return (
    <section aria-label="Output">
      <pre
        ref={place}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
        tabIndex={0}
      />
      {isCut && output.written > output.shown && (
        <p>
          Only the first {numbered(output.shown)} characters are shown
          {!isRunning && ` of ${numbered(output.written)}`}.{" "}
          <button type="button" onClick={() => save("output.txt", output.whole)}>
            Download the whole
          </button>
        </p>
      )}
    </section>
  );
}
