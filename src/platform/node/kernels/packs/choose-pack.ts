import { messageOf, RuvLLMError } from '../../../../core/errors.ts';
import type { KernelPackFactory } from '../../../../kernels/contract.ts';
import {
  chooseShapes,
  describeShape,
  measureKernels,
  rateSpeed,
  type SpeedShape,
} from '../../../../kernels/measure-kernels.ts';
import { openPack, type PackCheck } from './external-pack.ts';
import { type PackTrust, readTrust } from './pack-trust.ts';
import { addSpeeds, describeMachine, readSpeeds, type SpeedRecord } from './speed-history.ts';

/** The allowed pack with a name; throws `not_found`, `untrusted` or `kernel_failed`. */
export function openNamedPack(
  name: string,
  check: PackCheck,
  trust: PackTrust = readTrust(),
): Promise<KernelPackFactory> {
  const pack = trust.packs.find((allowed) => allowed.name === name);
  if (pack !== undefined) return openPack(pack.folder, trust, check);
  const names = trust.packs.map((allowed) => allowed.name);
  const known = names.length === 0 ? 'none is allowed' : `allowed are ${names.join(', ')}`;
  throw new RuvLLMError('not_found', `no kernel pack named ${JSON.stringify(name)}: ${known}`, {
    data: { name, names },
  });
}

/** All allowed packs that pass their checks; the others are reported. */
export async function openAllowedPacks(
  check: PackCheck,
  refuse: (name: string, reason: string) => void,
  trust: PackTrust = readTrust(),
): Promise<KernelPackFactory[]> {
  const factories: KernelPackFactory[] = [];
  for (const { name, folder } of trust.packs) {
    try {
      factories.push(await openPack(folder, trust, check));
    } catch (error) {
      refuse(name, messageOf(error));
    }
  }
  return factories;
}

export interface SpeedCheck {
  readonly numThreads: number;
  readonly matrices: readonly SpeedShape[];
  readonly now: () => number;
  /** Default: that of this user. */
  readonly historyPath?: string;
  /** Measures kernels that have a record, too. */
  readonly isFresh?: boolean;
}

/** Speeds of kernels with the matrices of a model: recorded ones, and measured where there is no record. */
export async function findSpeeds(factories: readonly KernelPackFactory[], check: SpeedCheck): Promise<SpeedRecord[]> {
  const { numThreads, now, historyPath, isFresh = false } = check;
  const shapes = chooseShapes(check.matrices);
  const machine = describeMachine();
  const shape = describeShape(shapes);
  const known = isFresh ? [] : readSpeeds(historyPath);
  const measured: SpeedRecord[] = [];
  const records: SpeedRecord[] = [];
  for (const factory of factories) {
    const found = known.find(
      (record) =>
        record.machine === machine &&
        record.kernels === factory.name &&
        record.shape === shape &&
        record.numThreads === numThreads,
    );
    if (found !== undefined) {
      records.push(found);
      continue;
    }
    const speed = await measureKernels(factory, shapes, { numThreads, now });
    const record = { machine, kernels: factory.name, numThreads, shape, ...speed, measuredMs: Date.now() };
    measured.push(record);
    records.push(record);
  }
  if (measured.length > 0) addSpeeds(measured, historyPath);
  return records;
}

/** The fastest of several kinds of kernels for a model. */
export async function chooseFastest(
  factories: readonly KernelPackFactory[],
  check: SpeedCheck,
): Promise<KernelPackFactory> {
  if (factories.length === 1 || check.matrices.length === 0) return factories[0]!;
  const rates = (await findSpeeds(factories, check)).map(rateSpeed);
  return factories[rates.indexOf(Math.min(...rates))]!;
}
