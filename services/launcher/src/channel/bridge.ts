/** Joins two connections: what one sends, the other gets; when one breaks, the other is broken. */
import type { Duplex } from "node:stream";

export function join(left: Duplex, right: Duplex): void {
  for (const [from, to] of [
    [left, right],
    [right, left],
  ] as const) {
    from.on("error", () => to.destroy());
    from.on("close", () => {
      if (!from.readableEnded || !from.writableFinished) to.destroy();
    });
    from.pipe(to);
  }
}
