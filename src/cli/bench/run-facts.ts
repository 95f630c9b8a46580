import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Figure } from '../../learning/evaluation/retrieval.ts';
import { readSystemInfo } from '../../platform/node/process/system-info.ts';
import type { CommandContext } from '../command.ts';
import { formatBytes } from '../format.ts';
import { requireRange } from '../usage-error.ts';
import type { BenchData } from './read-data.ts';
import { PACKAGE_FOLDER } from '../../platform/node/files/package-folder.ts';

/** Everything that is needed to repeat a measurement. */
export interface RunFacts {
  readonly topic: string;
  readonly version: string;
  /** Null outside a checkout. */
  readonly commit: string | null;
  readonly machine: {
    readonly cpu: string;
    readonly numCores: number;
    readonly memoryBytes: number;
    readonly platform: string;
    readonly node: string;
  };
  readonly seed: number;
  readonly data: { readonly name: string; readonly sha256: string; readonly numRows: number };
}

const root = fileURLToPath(PACKAGE_FOLDER);

/** The commit of a checkout; an installed package has none. */
function readCommit(): string | null {
  if (!existsSync(join(root, '.git'))) return null;
  try {
    const text = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }); // prettier-ignore
    return text.trim();
  } catch {
    return null; // git is not installed
  }
}

export const readSeed = ({ values }: CommandContext): number =>
  requireRange('--seed', (values['--seed'] as number | undefined) ?? 1, 0, 2 ** 31);

export function collectFacts(
  context: CommandContext,
  topic: string,
  { name, sha256, rows }: BenchData<unknown>,
): RunFacts {
  const { system, architecture, cpuModel, numCpus, totalMemoryBytes } = readSystemInfo();
  return {
    topic,
    version: context.version,
    commit: readCommit(),
    machine: {
      cpu: cpuModel,
      numCores: numCpus,
      memoryBytes: totalMemoryBytes,
      platform: `${system} ${architecture}`,
      node: process.version,
    },
    seed: readSeed(context),
    data: { name, sha256, numRows: rows.length },
  };
}

/** One remark with the conditions of the run. */
export function noteFacts({ output }: CommandContext, { version, commit, machine, seed, data }: RunFacts): void {
  const { cpu, numCores, memoryBytes, node } = machine;
  const source = commit === null ? '' : `, commit ${commit.slice(0, 12)}`;
  output.note(`data: ${data.name}, ${data.numRows} rows, sha256 ${data.sha256.slice(0, 12)}; seed ${seed}`);
  output.note(`ruvllm ${version}${source}; Node.js ${node}; ${cpu}, ${numCores} cores, ${formatBytes(memoryBytes)}`);
}

const fixed = (value: number): string => value.toFixed(3).replace(/^-(?=[0.]*$)/, '');

/** `0.812 [0.700, 0.900]`. */
export const showFigure = ({ mean, low, high }: Figure): string => `${fixed(mean)} [${fixed(low)}, ${fixed(high)}]`;
export const showNumber = fixed;
