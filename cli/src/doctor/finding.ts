/** One line of ./svc doctor. `fail`: the service would be unsafe or could not run. `warn`: it runs, but somebody should know. */
export interface Finding {
  grade: "ok" | "warn" | "fail";
  subject: string;
  note: string;
  fix?: string;
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
