import { sessionSignal } from '../../app/session-signal.ts';
import { Button } from '../../components/button.tsx';
import { LineChart } from '../../components/line-chart.tsx';
import { formatShare } from '../../format/numbers.ts';
import { formatTime } from '../../format/time.ts';
import { messages } from '../../messages/index.ts';
import { type History, type Range, seriesOf } from './history.ts';

const text = messages.live;
const RANGE_NAMES: readonly Range[] = ['recent', 'hour'];

const range = sessionSignal<Range>('recent');

/** The history of one model, or of all: the last minutes or the last hour. */
export function Charts({ history, model }: { history: History; model: string | null }) {
  const series = seriesOf(history[range.value], model);
  return (
    <>
      <div class="row" role="group" aria-label={text.range}>
        {RANGE_NAMES.map((name) => (
          <Button key={name} isSmall isPressed={range.value === name} onClick={() => (range.value = name)}>
            {text.ranges[name]}
          </Button>
        ))}
        {series.at.length > 0 && (
          <span class="small soft">
            {text.since}
            <data data-figure="since" value={series.at[0]}>
              {formatTime(series.at[0]! * 1000)}
            </data>
          </span>
        )}
      </div>
      <div class="live-charts">
        <section class="card" aria-label={text.throughput}>
          <h2>{text.tokensPerSecond}</h2>
          <LineChart
            label={text.throughputChart}
            x={series.at}
            lines={[
              { label: text.generated, values: series.generated },
              { label: text.prompt, values: series.prompt },
            ]}
          />
        </section>
        <section class="card" aria-label={text.load}>
          <h2>{text.batchAndQueue}</h2>
          <LineChart
            label={text.loadChart}
            isCount
            x={series.at}
            lines={[
              { label: text.batch, values: series.batch },
              { label: text.queue, values: series.waiting },
            ]}
          />
        </section>
        <section class="card" aria-label={text.memoryAndCache}>
          <h2>{text.memoryAndCache}</h2>
          <LineChart
            label={text.memoryChart}
            x={series.at}
            format={formatShare}
            range={[0, 1]}
            lines={[
              { label: text.budgetUse, values: series.budgetShare },
              { label: text.cacheHits, values: series.hitShare },
            ]}
          />
        </section>
        <section class="card" aria-label={text.answers}>
          <h2>{text.answers}</h2>
          <LineChart
            label={text.answersChart}
            isCount
            x={series.at}
            lines={[
              { label: text.answered, values: series.answered },
              { label: text.failed, values: series.failed, colour: '--bad' },
            ]}
          />
        </section>
      </div>
    </>
  );
}
