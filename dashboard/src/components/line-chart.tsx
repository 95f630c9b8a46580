import { useEffect, useRef } from 'preact/hooks';
import UPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import './line-chart.css';
import { themeChanges } from '../app/theme.ts';
import { formatNumber } from '../format/numbers.ts';
import { COUNT_STEPS, xRange } from './chart-scale.ts';
import { resolveColour } from './css-colour.ts';

/** More points than this are drawn as a line alone. */
const MAX_DOTS = 40;

export interface Line {
  readonly label: string;
  /** One for each x; null: a gap. */
  readonly values: readonly (number | null)[];
  /** Of the theme; default: one of `--series-1` to `--series-6`, by its place. */
  readonly colour?: string;
  readonly isDashed?: boolean;
}

export interface LineChartProps {
  /** What it shows, for those who do not see it: name the trend, not the shape. */
  readonly label: string;
  /** Seconds since 1970 where `isTime`, else anything that grows. */
  readonly x: readonly number[];
  readonly lines: readonly Line[];
  /** Default: true. */
  readonly isTime?: boolean;
  /** Default: 200. */
  readonly height?: number;
  readonly format?: (value: number) => string;
  /** Whether there is nothing between 1 and 2; default: false. */
  readonly isCount?: boolean;
  /** Lowest and highest of the y axis; null: as the data has it. Default: from 0. */
  readonly range?: readonly [number | null, number | null];
  /** Under the chart; also read out. */
  readonly xLabel?: string;
}

/** Lines over time. The pointer shows values; the same numbers stand in the legend, which is text. */
export function LineChart(props: LineChartProps) {
  const { label, x, lines, height = 200 } = props;
  const host = useRef<HTMLDivElement>(null);
  const chart = useRef<UPlot | null>(null);
  const changes = themeChanges.value;
  // What a chart is made of; other values are only handed to it.
  const shape = JSON.stringify([
    lines.map(({ label: name, colour, isDashed }) => [name, colour, isDashed]),
    height,
    props.isTime,
    props.range,
    props.isCount,
    changes,
  ]);

  useEffect(() => {
    const element = host.current!;
    const made = new UPlot(optionsOf(props, element.clientWidth), dataOf(x, lines), element);
    chart.current = made;
    const observer = new ResizeObserver(() => {
      if (element.clientWidth > 0) made.setSize({ width: element.clientWidth, height });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      chart.current = null;
    };
  }, [shape]);
  useEffect(() => chart.current?.setData(dataOf(x, lines)), [x, lines]);

  return <div class="line-chart" ref={host} role="img" aria-label={label} style={{ minHeight: `${height}px` }} />;
}

function dataOf(x: readonly number[], lines: readonly Line[]): UPlot.AlignedData {
  return [x as number[], ...lines.map(({ values }) => values as (number | null)[])];
}

function optionsOf(props: LineChartProps, width: number): UPlot.Options {
  const {
    lines,
    isTime = true,
    height = 200,
    format = formatNumber,
    range = [0, null],
    xLabel,
    isCount = false,
  } = props;
  const axis: UPlot.Axis = {
    stroke: resolveColour('--ink-soft'),
    grid: { stroke: resolveColour('--line'), width: 1 },
    ticks: { show: false },
    font: '12px system-ui, sans-serif',
  };
  return {
    width: Math.max(120, width),
    height,
    legend: { live: true },
    cursor: { y: false, points: { size: 7 } },
    scales: {
      x: {
        time: isTime,
        range: (chart, min, max) => xRange(chart.data[0], [min, max], isTime) as UPlot.Range.MinMax, // what it is handed of a single time is years
      },
      y: {
        range: (_chart, min, max) => {
          const low = range[0] ?? min ?? 0;
          const high = range[1] ?? max ?? 1;
          return [low, high > low ? high + (range[1] === null ? (high - low) * 0.08 : 0) : low + 1];
        },
      },
    },
    series: [
      xLabel === undefined ? {} : { label: xLabel },
      ...lines.map(({ label, colour, isDashed = false }, index) => ({
        label,
        stroke: resolveColour(colour ?? `--series-${(index % 6) + 1}`),
        width: 2,
        ...(isDashed ? { dash: [6, 5] } : {}),
        // A curve of a few points is hard to see, one of a single point not at all.
        points: { show: (chart: UPlot) => chart.data[0].length <= MAX_DOTS, size: 6 },
        value: (_chart: UPlot, value: number | null) => (value === null ? '–' : format(value)),
      })),
    ],
    axes: [
      axis,
      {
        ...axis,
        size: 62,
        ...(isCount ? { incrs: [...COUNT_STEPS] } : {}),
        values: (_chart, ticks) => ticks.map((tick) => format(tick)),
      },
    ],
  };
}
