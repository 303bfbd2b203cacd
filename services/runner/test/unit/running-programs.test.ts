import { createRegistry } from "@svc/service-kit";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { runnerMetrics } from "../../src/metrics.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("a program counts as running from its start to the next stage, its pause or its end", () => {
  const { began, running } = runnerMetrics(createRegistry(), []);
  const [one, two] = [began("python"), began("bash")];
  one.enter("setup");
  expect(running()).toEqual({});
  for (const end of [() => one.enter("collect"), one.paused, one.abandoned, () => one.ended("success")]) {
    one.runs(1000);
    two.runs(1000);
    expect(running()).toEqual({ python: 1, bash: 1 });
    end();
    expect(running()).toEqual({ bash: 1 });
  }
});

it("a program that goes on beyond its time counts no more, until it is given more", () => {
  const { began, running } = runnerMetrics(createRegistry(), []);
  const [one, two] = [began("python"), began("python")];
  one.runs(1000);
  two.runs(3000);
  vi.advanceTimersByTime(999);
  expect(running()).toEqual({ python: 2 });
  vi.advanceTimersByTime(1);
  expect(running()).toEqual({ python: 1 });
  one.runs(1000);
  expect(running()).toEqual({ python: 2 });
});
