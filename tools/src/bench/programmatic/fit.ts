/** The least-squares line through the times of programs over their number of calls. Pure. */
export interface Point {
  calls: number;
  ms: number;
}

export interface Line {
  perCall: number;
  start: number;
  /** Share of the differences that the line explains; 1 is a straight line. */
  r2: number;
}

export function fit(points: readonly Point[]): Line {
  const n = points.length;
  const meanCalls = points.reduce((sum, { calls }) => sum + calls, 0) / n;
  const meanMs = points.reduce((sum, { ms }) => sum + ms, 0) / n;
  const spread = points.reduce((sum, { calls }) => sum + (calls - meanCalls) ** 2, 0);
  const perCall =
    points.reduce((sum, { calls, ms }) => sum + (calls - meanCalls) * (ms - meanMs), 0) / spread;
  const start = meanMs - perCall * meanCalls;
  const missed = points.reduce((sum, { calls, ms }) => sum + (ms - start - perCall * calls) ** 2, 0);
  const total = points.reduce((sum, { ms }) => sum + (ms - meanMs) ** 2, 0);
  return { perCall, start, r2: total === 0 ? 1 : 1 - missed / total };
}

export function describeFit(points: readonly Point[]): string {
  const { perCall, start, r2 } = fit(points);
  return `${start.toFixed(0)} ms + ${perCall.toFixed(1)} ms per call (R² ${r2.toFixed(4)})`;
}
