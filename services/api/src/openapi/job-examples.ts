/** The examples for the job routes. */
import { type Examples, events, executed, json, STORED_AT } from "./example-parts.ts";

const runningJob = {
  job_id: "Vq3xN8sT0_mJ-4rLw2Kdz",
  status: "running",
  language: "python",
  created_at: STORED_AT,
  started_at: STORED_AT,
};

export const JOB_EXAMPLES: Readonly<Record<string, Examples>> = {
  getJob: {
    answers: json(200, {
      running: { summary: "It runs", value: runningJob },
      completed: {
        summary: "It has ended",
        value: { ...runningJob, status: "completed", ended_at: STORED_AT, result: executed },
      },
    }),
  },
  jobEvents: {
    answers: { 200: events(executed) },
  },
  listJobs: {
    answers: json(200, { one: { summary: "One job", value: { jobs: [runningJob] } } }),
  },
  deleteJob: {},
};
