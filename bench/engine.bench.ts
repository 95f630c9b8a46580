// Compares our engine with node-llama-cpp: the same file, the same number of threads, interleaved in one run.
//   npm run bench -- engine                           the promised rows
//   npm run bench -- engine --size 0.5b --type Q4_K   one shape
//   npm run bench -- engine --full                    the rows, then all sizes and types (takes an hour)
import { type EngineBenchOptions, readEngineOptions } from './support/engine-options.ts';
import { measureRows, type Row, type RowsInput } from './support/engine-rows.ts';
import { findNativeEntrants } from './support/entrants.ts';
import { type MachineProbe, startMachineProbe } from './support/machine-peak.ts';
import type { RaceResult } from './support/race.ts';
import { printTable } from './support/report.ts';
import { raceAllShapes, raceShape } from './support/shape-races.ts';

function readOptions(): EngineBenchOptions {
  try {
    return readEngineOptions(process.argv.slice(2));
  } catch (error) {
    console.error(`error: ${(error as Error).message}`);
    process.exit(2);
  }
}

function printMachine(probe: MachineProbe | string, numThreads: number): void {
  if (typeof probe === 'string') return console.log(probe);
  const gmacs = (value: number | null): string => (value === null ? 'none' : `${value.toFixed(0)} GMAC/s`);
  const { sdot, vnni, amx } = probe.peak;
  console.log(
    `\nint8 peak of ${numThreads} threads here: SDOT ${gmacs(sdot)}, AVX-512 VNNI ${gmacs(vnni)}, AMX ${gmacs(amx)}`,
  );
}

function printRows(rows: readonly Row[]): void {
  console.log('');
  printTable([
    ['ours to node-llama-cpp', 'measured', 'promised'],
    ...rows.map(({ name, value, promise }) => [name, value?.toFixed(3) ?? '-', promise]),
  ]);
  for (const { name, value, reason } of rows) if (value === null) console.log(`${name}: null, ${reason}`);
}

const plainRace = ({ model, streamRead, figures }: RaceResult): object => ({
  model: model.name,
  streamRead,
  ...Object.fromEntries(figures),
});

const options = readOptions();
const { shape, isFull, hasNative, hasWasm, ...settings } = options;
const natives = await findNativeEntrants();
const probe = startMachineProbe(settings.numThreads);
const input: RowsInput = { settings, natives, hasNative, hasWasm, probe };
console.log(
  `${settings.numThreads} threads, ${settings.numRounds} rounds, prompt ${settings.numPrompt}, decode ${settings.numDecode} after ${settings.depth}; medians`,
);
if (hasNative && natives.best === null) console.log(`No native kernels: ${natives.whyNot('baseline')}`);

const printSummary = (values: object, races: readonly RaceResult[]): void => {
  const peak = typeof probe === 'string' ? null : probe.peak;
  const machine = { arch: process.arch, build: (hasNative && natives.best?.build) || null };
  console.log(
    JSON.stringify({ bench: 'engine', ...machine, ...settings, ...values, peak, races: races.map(plainRace) }),
  );
};
if (shape !== null) {
  const { result, ratios } = await raceShape(shape, input);
  printMachine(probe, settings.numThreads);
  printSummary({ ...shape, ...ratios }, [result]);
} else {
  const { rows, races } = await measureRows(input);
  if (isFull) races.push(...(await raceAllShapes(input)));
  printMachine(probe, settings.numThreads);
  printRows(rows);
  const values = Object.fromEntries(rows.map(({ name, value }) => [name, value]));
  const reasons = Object.fromEntries(
    rows.flatMap(({ name, reason }) => (reason === undefined ? [] : [[name, reason]])),
  );
  printSummary({ ...values, reasons }, races);
}
