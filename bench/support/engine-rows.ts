import { benchModel } from './bench-model.ts';
import { type Entrant, type NativeEntrants, peer, wasm } from './entrants.ts';
import type { MachineProbe } from './machine-peak.ts';
import { memoryShare, race, type RaceResult, ratio } from './race.ts';
import { printRace, streamShare } from './race-table.ts';
import type { RaceSettings, TaskName } from './tasks.ts';

/** The result of a row: a ratio, or null with the reason. */
export interface Row {
  readonly name: string;
  readonly value: number | null;
  /** The project's promise in words; empty if the row is only reported. */
  readonly promise: string;
  readonly reason?: string;
}

export interface RowsInput {
  readonly settings: RaceSettings;
  readonly natives: NativeEntrants;
  readonly hasNative: boolean;
  readonly hasWasm: boolean;
  readonly probe: MachineProbe | string;
}

/** The promise of each row, by the best build of an architecture; rows without an entry are only reported. */
const PROMISES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  arm64: {
    prefill: '≥ 1.5',
    prefill_q8_0: '≥ 1.5',
    prefill_q4_k: '≥ 1.5',
    decode_b1: '≥ 1.15',
    decode_b8_vs_peer: '≥ 1.3',
    decode_contended: '≥ 2',
    wasm_prefill: '≥ 0.3',
    wasm_decode: '≥ 0.6',
  },
  x64: {
    prefill: '≥ 2.5 with AMX, ≥ 1.5 without',
    prefill_q8_0: '≥ 2.5 with AMX, ≥ 1.5 without',
    prefill_avx512: '≥ 1.5',
    prefill_avx512_q8_0: '≥ 1.5',
    decode_b1: '≥ 1.1',
    decode_bandwidth_share: '≥ 0.8',
    decode_b8_vs_b1: '≥ 2',
    decode_b8_vs_peer: '≥ 1.2',
    decode_contended: '≥ 2',
    ttft_small: '≤ 0.5',
    rss: '≤ 1.05',
  },
};

/** Rows in order, the same on every architecture. Those of a specific build are null if it cannot run. */
const ROWS: Readonly<Record<string, { readonly kernels: 'best' | 'avx512vnni' | 'wasm' }>> = {
  prefill: { kernels: 'best' },
  prefill_q8_0: { kernels: 'best' },
  prefill_q4_k: { kernels: 'best' },
  prefill_avx512: { kernels: 'avx512vnni' },
  prefill_avx512_q8_0: { kernels: 'avx512vnni' },
  decode_b1: { kernels: 'best' },
  decode_bandwidth_share: { kernels: 'best' },
  decode_b8_vs_b1: { kernels: 'best' },
  decode_b8_vs_peer: { kernels: 'best' },
  decode_contended: { kernels: 'best' },
  ttft_small: { kernels: 'best' },
  rss: { kernels: 'best' },
  memory: { kernels: 'best' },
  wasm_prefill: { kernels: 'wasm' },
  wasm_decode: { kernels: 'wasm' },
  wasm_memory: { kernels: 'wasm' },
};

/** The promised rows: Q4_0 at 1b unless a row's name says otherwise. */
export async function measureRows(input: RowsInput): Promise<{ rows: Row[]; races: RaceResult[] }> {
  const { natives, probe, hasNative } = input;
  const best = hasNative ? natives.best : null;
  const races: RaceResult[] = [];
  const values = new Map<string, number>();
  await raceMain(input, races, values);
  if (best !== null) {
    await racePrompt('Q8_0', input, races, values);
    await racePrompt('Q4_K', input, races, values);
    await raceBatch(best, input, races, values);
    await raceFirstToken(best, input, races, values);
  }
  const whyNot = (name: string, kernels: string): string => {
    if (kernels === 'wasm') return 'WASM kernels do not participate';
    if (!hasNative) return 'native kernels do not participate';
    if (name === 'decode_bandwidth_share' && typeof probe === 'string') return probe;
    return natives.whyNot(kernels === 'best' ? 'baseline' : kernels);
  };
  const rows = Object.entries(ROWS).map(([name, { kernels }]): Row => {
    const promise = PROMISES[process.arch]?.[name] ?? '';
    const value = values.get(name);
    return value === undefined
      ? { name, value: null, promise, reason: whyNot(name, kernels) }
      : { name, value, promise };
  });
  return { rows, races };
}

/** The entrants for prompts: with and without AMX, or the best available. */
export function promptEntrants({ natives, hasNative }: Pick<RowsInput, 'natives' | 'hasNative'>): Entrant[] {
  if (!hasNative || natives.best === null) return [];
  const { best, byBuild } = natives;
  return [...byBuild.values()].filter(
    (entrant) => entrant === best || entrant === byBuild.get('amx') || entrant === byBuild.get('avx512vnni'),
  );
}

type Values = Map<string, number>;

async function raceMain(input: RowsInput, races: RaceResult[], values: Values): Promise<void> {
  const { settings, natives, hasNative, hasWasm, probe } = input;
  const ours = promptEntrants(input);
  const best = hasNative ? natives.best : null;
  const everyone = [...ours, ...(hasWasm ? [wasm] : []), peer];
  const result = await race(
    benchModel('1b', 'Q4_0'),
    { prefill: everyone, decode: everyone, ...(best === null ? {} : { decodeContended: [best, peer] }) },
    settings,
    typeof probe === 'string' ? null : probe,
  );
  finish(result, races);
  setPrompts(input, result, '', values);
  if (hasWasm) {
    values.set('wasm_prefill', against(result, 'prefill', wasm));
    values.set('wasm_decode', against(result, 'decode', wasm));
    values.set('wasm_memory', memoryShare(result, wasm.name));
  }
  if (best === null) return;
  values.set('decode_b1', against(result, 'decode', best));
  values.set('decode_contended', against(result, 'decodeContended', best));
  if (result.streamRead.length > 0) {
    const share = streamShare(speedsOf(result, 'decode', best), result.model, result.streamRead);
    values.set('decode_bandwidth_share', share);
  }
  const rssOf = ({ name }: Entrant): number => result.figures.get(name)!.memory.rssBytes;
  values.set('rss', rssOf(best) / rssOf(peer));
  values.set('memory', memoryShare(result, best.name));
}

async function racePrompt(type: 'Q8_0' | 'Q4_K', input: RowsInput, races: RaceResult[], values: Values): Promise<void> {
  const plan = { prefill: [...promptEntrants(input), peer] };
  const result = await race(benchModel('1b', type), plan, input.settings, null);
  finish(result, races);
  setPrompts(input, result, `_${type.toLowerCase()}`, values);
}

async function raceBatch(best: Entrant, { settings }: RowsInput, races: RaceResult[], values: Values): Promise<void> {
  const plan = { decode: [best, peer], decodeBatch: [best, peer] };
  const half = { ...settings, depth: 0, numDecode: Math.ceil(settings.numDecode / 2) };
  const result = await race(benchModel('1b', 'Q4_0'), plan, half, null);
  finish(result, races);
  values.set('decode_b8_vs_peer', against(result, 'decodeBatch', best));
  const [eight, one] = [speedsOf(result, 'decodeBatch', best), speedsOf(result, 'decode', best)];
  values.set('decode_b8_vs_b1', ratio(eight, one));
}

async function raceFirstToken(
  best: Entrant,
  { settings }: RowsInput,
  races: RaceResult[],
  values: Values,
): Promise<void> {
  const result = await race(benchModel('15m', 'Q4_0'), { firstToken: [best, peer] }, settings, null);
  finish(result, races);
  values.set('ttft_small', against(result, 'firstToken', best));
}

function setPrompts({ natives, hasNative }: RowsInput, result: RaceResult, suffix: string, values: Values): void {
  if (!hasNative || natives.best === null) return;
  values.set(`prefill${suffix}`, against(result, 'prefill', natives.best));
  const avx512 = natives.byBuild.get('avx512vnni');
  if (avx512 !== undefined) values.set(`prefill_avx512${suffix}`, against(result, 'prefill', avx512));
}

function finish(result: RaceResult, races: RaceResult[]): void {
  printRace(result);
  races.push(result);
}

function speedsOf(result: RaceResult, task: TaskName, { name }: Entrant): number[] {
  return result.figures.get(name)!.speeds[task]!;
}

const against = (result: RaceResult, task: TaskName, entrant: Entrant): number =>
  ratio(speedsOf(result, task, entrant), speedsOf(result, task, peer));
