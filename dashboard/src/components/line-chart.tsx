import { useEffect, useRef } from 'preact/hooks';
import UPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import './line-chart.css';
import { themeChanges } from '../app/theme.ts';
import { formatNumber } from '../format/numbers.ts';
import { formatTick, formatTime } from '../format/time.ts';
import { messages } from '../messages/index.ts';
import { COUNT_STEPS, xRange } from './chart-scale.ts';
import { resolveColour } from './css-colour.ts';

/** The labels of the time axis are at least this far apart. */
const TIME_LABEL_PX = 84;
/** Charts with more points draw the line without dots. */
const MAX_DOTS = 40;

export interface Line {
  readonly label: string;
  /** One value per x; null: a gap. */
  readonly values: readonly (number | null)[];
  /** Theme colour; default: `--series-1` to `--series-6`, by position. */
  readonly colour?: string;
  readonly isDashed?: boolean;
}

export interface LineChartProps {
  /** Accessible description: name the measured values, not the shape. */
  readonly label: string;
  /** Ascending; Unix time in seconds when `isTime`. */
  readonly x: readonly number[];
  readonly lines: readonly Line[];
  /** Default: true. */
  readonly isTime?: boolean;
  /** Default: 200. */
  readonly height?: number;
  readonly format?: (value: number) => string;
  /** Whether the values are integers; default: false. */
  readonly isCount?: boolean;
  /** Minimum and maximum of the y axis; null: taken from the data. Default: `[0, null]`. */
  readonly range?: readonly [number | null, number | null];
  /** Name of the x values in the legend. */
  readonly xLabel?: string;
}

/** A line chart. The legend shows the values at the pointer as text. */
export function LineChart(props: LineChartProps) {
  const { label, x, lines, height = 200 } = props;
  const host = useRef<HTMLDivElement>(null);
  const chart = useRef<UPlot | null>(null);
  // Changes to these recreate the chart; other changes only update its data.
  const configKey = JSON.stringify([
    lines.map(({ label: name, colour, isDashed }) => [name, colour, isDashed]),
    height,
    props.isTime,
    props.range,
    props.isCount,
    themeChanges.value,
  ]);

  useEffect(() => {
    const element = host.current!;
    const instance = new UPlot(optionsOf(props, element.clientWidth), dataOf(x, lines), element);
    chart.current = instance;
    const observer = new ResizeObserver(() => {
      if (element.clientWidth > 0) instance.setSize({ width: element.clientWidth, height });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      instance.destroy();
      chart.current = null;
    };
  }, [configKey]);
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
  const xName = xLabel ?? (isTime ? messages.components.time : undefined);
  return {
    width: Math.max(120, width),
    height,
    legend: { live: true },
    cursor: { y: false, points: { size: 7 } },
    scales: {
      x: {
        time: isTime,
        // For a single point uPlot suggests a range of years.
        range: (chart, min, max) => xRange(chart.data[0], [min, max], isTime) as UPlot.Range.MinMax,
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
      {
        ...(xName === undefined ? {} : { label: xName }),
        ...(isTime ? { value: (_chart: UPlot, value: number | null) => formatTime((value ?? NaN) * 1000) } : {}),
      },
      ...lines.map(({ label, colour, isDashed = false }, index) => ({
        label,
        stroke: resolveColour(colour ?? `--series-${(index % 6) + 1}`),
        width: 2,
        ...(isDashed ? { dash: [6, 5] } : {}),
        // A line of few points is hard to see; a single point would be invisible.
        points: { show: (chart: UPlot) => chart.data[0].length <= MAX_DOTS, size: 6 },
        value: (_chart: UPlot, value: number | null) => (value === null ? '–' : format(value)),
      })),
    ],
    axes: [
      isTime
        ? {
            ...axis,
            space: TIME_LABEL_PX,
            values: (_chart, ticks, _index, _space, stepSeconds) =>
              ticks.map((tick) => formatTick(tick * 1000, stepSeconds)),
          }
        : axis,
      {
        ...axis,
        size: 62,
        ...(isCount ? { incrs: [...COUNT_STEPS] } : {}),
        values: (_chart, ticks) => ticks.map((tick) => format(tick)),
      },
    ],
  };
}
