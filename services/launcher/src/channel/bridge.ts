/** Joins two connections: bytes that arrive on one go out on the other. When one breaks, the other is destroyed. */
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
