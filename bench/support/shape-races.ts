import type { TensorTypeName } from '../../src/core/tensor-type.ts';
import { BENCH_SIZES, benchModel, whyNoModel } from './bench-model.ts';
import { promptEntrants, type RowsInput } from './engine-rows.ts';
import { type Entrant, peer, wasm } from './entrants.ts';
import { memoryShare, race, type RaceResult, ratio } from './race.ts';
import { printRace } from './race-table.ts';

const FULL_TYPES: readonly TensorTypeName[] = ['Q4_0', 'Q4_K', 'Q8_0'];

/** One size and type: prompt and decode, ours against the peer. */
export async function raceShape(
  { size, type }: { size: string; type: TensorTypeName },
  input: RowsInput,
): Promise<{ result: RaceResult; ratios: Record<string, number> }> {
  const natives = promptEntrants(input);
  const everyone = [...natives, ...(input.hasWasm ? [wasm] : []), peer];
  const { settings, probe } = input;
  const plan = { prefill: everyone, decode: everyone };
  const result = await race(benchModel(size, type), plan, settings, typeof probe === 'string' ? null : probe);
  printRace(result);
  const ratios: Record<string, number> = {};
  const add = (key: string, { name }: Entrant): void => {
    const [ours, theirs] = [result.figures.get(name)!, result.figures.get(peer.name)!];
    ratios[`${key}_prefill`] = ratio(ours.speeds.prefill!, theirs.speeds.prefill!);
    ratios[`${key}_decode`] = ratio(ours.speeds.decode!, theirs.speeds.decode!);
    ratios[`${key}_memory`] = memoryShare(result, name);
  };
  if (natives[0] !== undefined) add('native', natives[0]);
  if (input.hasWasm) add('wasm', wasm);
  return { result, ratios };
}

/** Every size and type: prompt, decode at both ends of the context, and eight concurrent sequences. */
export async function raceAllShapes(input: RowsInput): Promise<RaceResult[]> {
  const { settings, probe } = input;
  const ours = (input.hasNative ? input.natives.best : null) ?? wasm;
  const both = [ours, peer];
  const results: RaceResult[] = [];
  for (const size of BENCH_SIZES) {
    for (const type of FULL_TYPES) {
      const reason = whyNoModel(size, type);
      if (reason !== null) {
        console.log(`\n${size} ${type}: skipped, ${reason}`);
        continue;
      }
      const model = benchModel(size, type);
      const alone = { prefill: both, decode: both, decodeDeep: both };
      results.push(await race(model, alone, { ...settings, depth: 0 }, typeof probe === 'string' ? null : probe));
      printRace(results.at(-1)!);
      // A separate race: eight sequences of the deep context would take gigabytes of cache.
      const half = { ...settings, depth: 0, numDecode: Math.ceil(settings.numDecode / 2) };
      results.push(await race(model, { decodeBatch: both }, half, null));
      printRace(results.at(-1)!);
    }
  }
  return results;
}
