/** One line of ./svc doctor. `fail`: the service would be unsafe or could not run. `warn`: it runs, but somebody should know. */
export interface Finding {
  grade: "ok" | "warn" | "fail";
  subject: string;
  note: string;
  fix?: string;
  /** Set when the feature could not be tried: says when it can be. */
  untried?: string;
}

export const ok = (subject: string, note: string): Finding => ({ grade: "ok", subject, note });
export const fail = (subject: string, note: string, fix: string): Finding => ({
  grade: "fail",
  subject,
  note,
  fix,
});
export const warn = (subject: string, note: string, fix: string): Finding => ({
  grade: "warn",
  subject,
  note,
  fix,
});

/** For a feature that decides whether the machine is fit, but cannot be tried yet. */
export const untried = (subject: string, note: string, fix: string, first: string): Finding => ({
  ...warn(subject, note, fix),
  untried: first,
});

/** The last line of the output. It never calls a machine fit on which no jail was tried. */
export function verdict(findings: readonly Finding[]): string {
  const failed = findings.filter(({ grade }) => grade === "fail").length;
  if (failed > 0) return `${failed} problem${failed === 1 ? "" : "s"}.`;
  const first = findings.find((finding) => finding.untried !== undefined)?.untried;
  return first === undefined ? "Fit to run." : `Probably fit to run: the jail can be tried ${first}.`;
}
