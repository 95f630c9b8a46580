import { benchModel } from './bench-model.ts';
import { type Entrant, type NativeEntrants, peer, wasm } from './entrants.ts';
import type { MachineProbe } from './machine-peak.ts';
import { memoryShare, race, type RaceResult, ratio } from './race.ts';
import { printRace, streamShare } from './race-table.ts';
import type { RaceSettings, TaskName } from './tasks.ts';

/** What was measured under the name of a row: a ratio, or null and why. */
export interface Row {
  readonly name: string;
  readonly value: number | null;
  /** What the project promises, in words; empty for a row that is only told. */
  readonly wanted: string;
  readonly reason?: string;
}

export interface RowsInput {
  readonly settings: RaceSettings;
  readonly natives: NativeEntrants;
  readonly hasNative: boolean;
  readonly hasWasm: boolean;
  readonly probe: MachineProbe | string;
}

const NATIVE_ROWS: Readonly<Record<string, { build?: string; wanted: string }>> = {
  prefill_amx: { build: 'amx', wanted: '≥ 2.5' },
  prefill_avx512: { build: 'avx512vnni', wanted: '≥ 1.5' },
  prefill_amx_q8_0: { build: 'amx', wanted: '≥ 2.5' },
  prefill_avx512_q8_0: { build: 'avx512vnni', wanted: '≥ 1.5' },
  decode_b1: { wanted: '≥ 1.1' },
  decode_bandwidth_share: { wanted: '≥ 0.8' },
  decode_b8_vs_b1: { wanted: '≥ 2' },
  decode_b8_vs_peer: { wanted: '≥ 1.2' },
  decode_contended: { wanted: '≥ 2' },
  ttft_small: { wanted: '≤ 0.5' },
  rss: { wanted: '≤ 1.05' },
  memory: { wanted: '' },
};
const WASM_ROWS = ['wasm_prefill', 'wasm_decode', 'wasm_memory'];

/** The promised rows: Q4_0 at 1b where a row's name says nothing else. */
export async function measureRows(input: RowsInput): Promise<{ rows: Row[]; races: RaceResult[] }> {
  const { natives, probe, hasNative, hasWasm } = input;
  const best = hasNative ? natives.best : null;
  const races: RaceResult[] = [];
  const values = new Map<string, number>();
  await raceMain(input, races, values);
  if (best !== null) {
    await raceQ8(input, races, values);
    await raceBatch(best, input, races, values);
    await raceFirstToken(best, input, races, values);
  }
  const whyNoNative = (row: string, build: string): string => {
    if (!hasNative) return 'native kernels do not take part';
    if (row === 'decode_bandwidth_share' && typeof probe === 'string') return probe;
    return natives.whyNot(build);
  };
  const rows = [
    ...Object.entries(NATIVE_ROWS).map(([name, { build = 'baseline', wanted }]): Row => {
      const value = values.get(name);
      return value === undefined
        ? { name, value: null, wanted, reason: whyNoNative(name, build) }
        : { name, value, wanted };
    }),
    ...WASM_ROWS.map((name): Row => {
      const value = values.get(name) ?? null;
      return { name, value, wanted: '', ...(hasWasm ? {} : { reason: 'WASM kernels do not take part' }) };
    }),
  ];
  return { rows, races };
}

/** The entrants that prompts are timed with: with and without AMX, or the best there is. */
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

async function raceQ8(input: RowsInput, races: RaceResult[], values: Values): Promise<void> {
  const plan = { prefill: [...promptEntrants(input), peer] };
  const result = await race(benchModel('1b', 'Q8_0'), plan, input.settings, null);
  finish(result, races);
  setPrompts(input, result, '_q8_0', values);
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
  if (!hasNative) return;
  for (const [row, build] of [
    ['prefill_amx', 'amx'],
    ['prefill_avx512', 'avx512vnni'],
  ] as const) {
    const entrant = natives.byBuild.get(build);
    if (entrant !== undefined) values.set(`${row}${suffix}`, against(result, 'prefill', entrant));
  }
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
