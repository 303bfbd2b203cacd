/** Reads numbers from the components' metrics in the Prometheus text format. Pure. */

export interface Sample {
  labels: Readonly<Record<string, string>>;
  value: number;
}

/** Samples of one metric in a scrape. */
export function samplesOf(scrape: string, metric: string): Sample[] {
  return scrape
    .split("\n")
    .filter((line) => line.startsWith(`${metric}{`) || line.startsWith(`${metric} `))
    .map((line) => {
      const end = line.lastIndexOf(" ");
      const labels = line.slice(metric.length, end).matchAll(/(\w+)="([^"]*)"/g);
      return {
        labels: Object.fromEntries([...labels].map(([, name = "", value = ""]) => [name, value])),
        value: Number(line.slice(end + 1)),
      };
    });
}

export interface Queue {
  waiting: number;
  active: number;
  delayed: number;
}

/** The worker's counts of jobs, by queue. */
export function queuesOf(scrape: string): Record<string, Queue> {
  const queues: Record<string, Queue> = {};
  for (const { labels, value } of samplesOf(scrape, "svc_queue_jobs")) {
    const { state = "" } = labels;
    const queue = (labels.queue ?? "").replace(/-queue$/, "");
    const counts = queues[queue] ?? { waiting: 0, active: 0, delayed: 0 };
    queues[queue] = { ...counts, [state]: value };
  }
  return queues;
}

/** The runner's counts of programs that have a slot; undefined when the scrape has none. */
export function programsOf(scrape: string): { running: number; paused: number } | undefined {
  const samples = samplesOf(scrape, "svc_sandbox_active_executions");
  const count = (state: string) => samples.find(({ labels }) => labels.state === state)?.value ?? 0;
  return samples.length === 0 ? undefined : { running: count("running"), paused: count("paused") };
}
