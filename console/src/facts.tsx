/** Shows how long each stage of a run took, and its limits. */
import type { Result } from "../../packages/client/src/results.ts";

const STEPS = [
  ["queue_ms", "waiting"],
  ["setup_ms", "preparing"],
  ["run_ms", "running"],
  ["collect_ms", "collecting files"],
] as const;
const shown = (ms: number) => `${ms < 100 ? ms.toFixed(1) : Math.round(ms)} ms`;
const MIB = 2 ** 20;

export function Facts({ result: { timings, limits, memory, limits_reached = [] } }: { result: Result }) {
  const steps = STEPS.map(([name, what]) => ({ what, ms: timings[name] ?? 0 }));
  const whole = Math.max(
    1,
    steps.reduce((sum, { ms }) => sum + ms, 0),
  );
  let before = 0;
  return (
    <section aria-label="Facts">
      <table class="waterfall">
        <caption>Time</caption>
        <tbody>
          {steps.map(({ what, ms }) => {
            const from = before;
            before += ms;
            return (
              <tr key={what}>
                <th scope="row">{what}</th>
                <td>{shown(ms)}</td>
                <td class="bars">
                  <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
                    <rect x={(100 * from) / whole} width={Math.max(0.5, (100 * ms) / whole)} height="4" />
                  </svg>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      <p>
        Memory: {(memory / MIB).toFixed(1)} MiB
        {limits !== undefined &&
          ` of ${Math.round(limits.memory_bytes / MIB)} MiB. Time limit: ${limits.run_timeout_ms / 1000} s`}
        .{limits_reached.map(({ limit }) => ` Limit reached: ${limit}.`)}
      </p>
    </section>
  );
}
