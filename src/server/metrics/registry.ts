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

/** Metrics in the text format of Prometheus. */
export interface MetricRegistry {
  counter(name: string, help: string): Counter;
  histogram(name: string, help: string, bounds: readonly number[]): Histogram;
  /** A value read when the text is written; `counter`: a total that is counted elsewhere. Default `gauge`. */
  gauge(name: string, help: string, read: () => Iterable<Sample>, type?: 'gauge' | 'counter'): void;
  write(): string;
}

/** Clients choose some label values: further series are counted together. */
const MAX_SERIES = 1000;
const OVERFLOW: Labels = { series: 'other' };

interface Series<T> {
  find(labels: Labels): T;
  entries(): Iterable<readonly [string, T]>;
}

function createSeries<T>(create: () => T): Series<T> {
  const all = new Map<string, T>();
  return {
    find(labels) {
      let key = writeLabels(labels);
      if (!all.has(key) && all.size >= MAX_SERIES) key = writeLabels(OVERFLOW);
      const series = all.get(key) ?? create();
      all.set(key, series);
      return series;
    },
    entries: () => all,
  };
}

export function createMetricRegistry(): MetricRegistry {
  const writers: (() => string)[] = [];
  const head = (name: string, help: string, type: string): string => `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
  return {
    counter(name, help) {
      const series = createSeries(() => ({ value: 0 }));
      writers.push(() => {
        const lines = Array.from(series.entries(), ([labels, { value }]) => `${name}${braced(labels)} ${value}\n`);
        return head(name, help, 'counter') + lines.join('');
      });
      return {
        add(amount, labels = {}) {
          series.find(labels).value += amount;
        },
      };
    },
    histogram(name, help, bounds) {
      const series = createSeries(() => ({ counts: bounds.map(() => 0), sum: 0, count: 0 }));
      writers.push(() => {
        const lines = Array.from(series.entries(), ([labels, { counts, sum, count }]) => {
          const prefix = labels === '' ? '' : `${labels},`;
          const buckets = counts.map((n, index) => `${name}_bucket{${prefix}le="${bounds[index]}"} ${n}\n`).join('');
          const total = `${name}_bucket{${prefix}le="+Inf"} ${count}\n`;
          return `${buckets}${total}${name}_sum${braced(labels)} ${sum}\n${name}_count${braced(labels)} ${count}\n`;
        });
        return head(name, help, 'histogram') + lines.join('');
      });
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
      writers.push(() => {
        const lines = Array.from(read(), ({ labels, value }) => `${name}${braced(writeLabels(labels))} ${value}\n`);
        return head(name, help, type) + lines.join('');
      });
    },
    write: () => writers.map((write) => write()).join(''),
  };
}

const braced = (labels: string): string => (labels === '' ? '' : `{${labels}}`);

function writeLabels(labels: Labels): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${escape(value)}"`)
    .join(',');
}

const escape = (value: string): string =>
  /[\\"\n]/.test(value) ? value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n') : value;
