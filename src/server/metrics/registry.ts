/** Label names and values of one series. */
export type Labels = Readonly<Record<string, string>>;

export interface Counter {
  add(amount: number, labels?: Labels): void;
}

export interface Histogram {
  observe(value: number, labels?: Labels): void;
}

export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

export interface HistogramPoint {
  readonly labels: Labels;
  readonly bounds: readonly number[];
  /** Observations up to each bound. */
  readonly counts: readonly number[];
  readonly count: number;
  readonly sum: number;
}

/** All series of a metric, as they are now. */
export type MetricFamily = { readonly name: string; readonly help: string } & (
  | { readonly type: 'counter' | 'gauge'; readonly points: readonly Sample[] }
  | { readonly type: 'histogram'; readonly points: readonly HistogramPoint[] }
);

/** Metrics, read for Prometheus and for OTLP. */
export interface MetricRegistry {
  counter(name: string, help: string): Counter;
  histogram(name: string, help: string, bounds: readonly number[]): Histogram;
  /** A value read when the metrics are; `counter`: a total that is counted elsewhere. Default `gauge`. */
  gauge(name: string, help: string, read: () => Iterable<Sample>, type?: 'gauge' | 'counter'): void;
  collect(): readonly MetricFamily[];
}

/** Clients choose some label values: further series are counted together. */
const MAX_SERIES = 1000;
const OVERFLOW: Labels = { series: 'other' };

interface Series<T> {
  find(labels: Labels): T;
  values(): Iterable<T>;
}

function createSeries<T>(create: (labels: Labels) => T): Series<T> {
  const all = new Map<string, T>();
  return {
    find(labels) {
      let key = writeLabels(labels);
      let own = labels;
      if (!all.has(key) && all.size >= MAX_SERIES) [key, own] = [writeLabels(OVERFLOW), OVERFLOW];
      const series = all.get(key) ?? create(own);
      all.set(key, series);
      return series;
    },
    values: () => all.values(),
  };
}

export function createMetricRegistry(): MetricRegistry {
  const readers: (() => MetricFamily)[] = [];
  return {
    counter(name, help) {
      const series = createSeries((labels) => ({ labels, value: 0 }));
      readers.push(() => ({ name, help, type: 'counter', points: [...series.values()] }));
      return {
        add(amount, labels = {}) {
          series.find(labels).value += amount;
        },
      };
    },
    histogram(name, help, bounds) {
      const series = createSeries((labels) => ({ labels, bounds, counts: bounds.map(() => 0), sum: 0, count: 0 }));
      readers.push(() => ({ name, help, type: 'histogram', points: [...series.values()] }));
      return {
        observe(value, labels = {}) {
          const totals = series.find(labels);
          totals.sum += value;
          totals.count++;
          for (const [index, bound] of bounds.entries()) if (value <= bound) totals.counts[index]!++;
        },
      };
    },
    gauge(name, help, read, type = 'gauge') {
      readers.push(() => ({ name, help, type, points: [...read()] }));
    },
    collect: () => readers.map((read) => read()),
  };
}

/** Adds a source of totals by result, which is read for each scrape. */
export function addTotals(
  registry: MetricRegistry,
  name: string,
  help: string,
  read: () => Readonly<Record<string, number>>,
): void {
  const samples = () => Object.entries(read()).map(([result, value]) => ({ labels: { result }, value }));
  registry.gauge(name, help, samples, 'counter');
}

/** Metrics in the text format of Prometheus. */
export function writePrometheus(families: readonly MetricFamily[]): string {
  return families.map((family) => `# HELP ${family.name} ${family.help}\n# TYPE ${family.name} ${family.type}\n${writePoints(family)}`).join(''); // prettier-ignore
}

function writePoints(family: MetricFamily): string {
  const { name } = family;
  if (family.type !== 'histogram') {
    return family.points.map(({ labels, value }) => `${name}${braced(writeLabels(labels))} ${value}\n`).join('');
  }
  const lines = family.points.map(({ labels: all, bounds, counts, sum, count }) => {
    const labels = writeLabels(all);
    const prefix = labels === '' ? '' : `${labels},`;
    const buckets = counts.map((n, index) => `${name}_bucket{${prefix}le="${bounds[index]}"} ${n}\n`).join('');
    const total = `${name}_bucket{${prefix}le="+Inf"} ${count}\n`;
    return `${buckets}${total}${name}_sum${braced(labels)} ${sum}\n${name}_count${braced(labels)} ${count}\n`;
  });
  return lines.join('');
}

const braced = (labels: string): string => (labels === '' ? '' : `{${labels}}`);

function writeLabels(labels: Labels): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${escape(value)}"`)
    .join(',');
}

const escape = (value: string): string =>
  /[\\"\n]/.test(value) ? value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n') : value;
