import { peer } from './entrants.ts';
import { type Figures, type RaceResult, ratio } from './race.ts';
import { median, printTable } from './report.ts';
import { type TaskName, TASKS } from './tasks.ts';

interface Column {
  readonly title: string;
  cell(figures: Figures): string;
}

/** The results of each contestant, and the ratio of ours to the peer's. */
export function printRace(result: RaceResult): void {
  const { model, figures, streamRead } = result;
  const tasks = (Object.keys(TASKS) as TaskName[]).filter((task) =>
    [...figures.values()].some(({ speeds }) => speeds[task] !== undefined),
  );
  const columns = [...tasks.flatMap((task) => taskColumns(task, result)), ...costColumns];
  const stream = streamRead.length > 0 ? `, stream read ${median(streamRead).toFixed(1)} GB/s in the same rounds` : '';
  console.log(`\n${model.name}${stream}`);
  printTable([
    ['', ...columns.map(({ title }) => title)],
    ...[...figures].map(([name, entry]) => [name, ...columns.map(({ cell }) => cell(entry))]),
    ...[...figures.keys()].filter((name) => name !== peer.name).map((name) => ratioRow(name, columns, tasks, result)),
  ]);
}

function taskColumns(task: TaskName, { model, streamRead }: RaceResult): Column[] {
  const { title, unit } = TASKS[task];
  const column = (title: string, digits: number, of: (speeds: number[]) => number): Column => ({
    title,
    cell: ({ speeds }) => (speeds[task] === undefined ? '' : of(speeds[task]).toFixed(digits)),
  });
  const columns = [column(`${title} ${unit}`, 2, median)];
  if (task === 'prefill') columns.push(column('GMAC/s', 0, (speeds) => (median(speeds) * model.promptMacs) / 1e9));
  if (task === 'decode') {
    columns.push(column('GB/s', 1, (speeds) => (median(speeds) * model.decodeBytes) / 1e9));
    if (streamRead.length > 0) columns.push(column('of stream', 2, (speeds) => streamShare(speeds, model, streamRead)));
  }
  return columns;
}

/** Bytes read by decoding as a share of the machine's read speed, round by round. */
export function streamShare(
  speeds: readonly number[],
  { decodeBytes }: RaceResult['model'],
  streamRead: readonly number[],
): number {
  return ratio(
    speeds.map((speed) => (speed * decodeBytes) / 1e9),
    streamRead,
  );
}

const mib = (bytes: number | null): string => (bytes === null ? '' : (bytes / 2 ** 20).toFixed(0));
const costColumns: readonly Column[] = [
  { title: 'load ms', cell: ({ loadMs }) => loadMs.toFixed(0) },
  { title: 'memory MiB', cell: ({ memory }) => mib(memory.rssBytes) },
  { title: 'not file-backed', cell: ({ memory }) => mib(memory.anonymousBytes) },
];

function ratioRow(name: string, columns: readonly Column[], tasks: readonly TaskName[], result: RaceResult): string[] {
  const [ours, theirs] = [result.figures.get(name)!, result.figures.get(peer.name)!];
  const byTitle = new Map<string, number>([['memory MiB', ours.memory.rssBytes / theirs.memory.rssBytes]]);
  for (const task of tasks) {
    const [a, b] = [ours.speeds[task], theirs.speeds[task]];
    if (a !== undefined && b !== undefined) byTitle.set(`${TASKS[task].title} ${TASKS[task].unit}`, ratio(a, b));
  }
  return [`${name} / peer`, ...columns.map(({ title }) => byTitle.get(title)?.toFixed(2) ?? '')];
}
