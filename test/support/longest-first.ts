import { existsSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Milliseconds by file, from earlier runs. */
export type Durations = Readonly<Record<string, number>>;

export function readDurations(root: string): Durations {
  const path = join(root, '.cache/test-durations.json');
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Durations) : {};
}

/** New files first, the largest of them first: they may be long. Then the longest. */
export function compareLength(a: string, b: string, durations: Durations, sizeOf: (file: string) => number): number {
  const [msA, msB] = [durations[a], durations[b]];
  if (msA === undefined || msB === undefined) {
    return msA === msB ? sizeOf(b) - sizeOf(a) : Number(msB === undefined) - Number(msA === undefined);
  }
  return msB - msA;
}

/** Starts the longest files first: one that starts last leaves the other worker idle. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { root } = this.ctx.config;
    const durations = readDurations(root);
    const sizeOf = (file: string): number => statSync(join(root, file), { throwIfNoEntry: false })?.size ?? 0;
    const fileOf = ({ moduleId }: TestSpecification): string => relative(root, moduleId).replaceAll('\\', '/');
    // An isolated file between two shared ones would end the process that they share.
    const isShared = ({ project }: TestSpecification): number => Number(!project.config.isolate);
    return [...files].sort(
      (a, b) => isShared(a) - isShared(b) || compareLength(fileOf(a), fileOf(b), durations, sizeOf),
    );
  }
}
