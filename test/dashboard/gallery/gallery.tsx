// The shared components, each once, for components.test.ts.
import { signal } from '@preact/signals';
import { render } from 'preact';
import { JsonViewer } from '../../../dashboard/src/components/json-viewer.tsx';
import { LineChart } from '../../../dashboard/src/components/line-chart.tsx';
import { StatTile } from '../../../dashboard/src/components/stat-tile.tsx';
import { Tabs } from '../../../dashboard/src/components/tabs.tsx';
import { VirtualTable } from '../../../dashboard/src/components/virtual-table.tsx';

const rows = signal(Array.from({ length: 10_000 }, (_, index) => ({ id: `row-${index}`, index })));
const openedRow = signal('');
const numEnds = signal(0);
const tab = signal('one');
const points = signal([1, 4, 2, 8, null, 7]);
Object.assign(globalThis, { addPoint: (value: number) => (points.value = [...points.value, value]) });

function Gallery() {
  return (
    <main class="page">
      <h1>Gallery</h1>
      <VirtualTable
        label="Many rows"
        rows={rows.value}
        columns={[
          { title: 'Name', width: 'minmax(120px, 1fr)', cell: ({ id }) => `<b>${id}</b>` },
          { title: 'Number', width: '120px', isNumber: true, cell: ({ index }) => index },
        ]}
        keyOf={({ id }) => id}
        onOpen={({ id }) => (openedRow.value = id)}
        onEnd={() => numEnds.value++}
        height={400}
      />
      <p id="opened">{openedRow}</p>
      <p id="ends">{numEnds}</p>
      <Tabs
        label="Choices"
        tabs={[
          { id: 'one', title: 'One' },
          { id: 'two', title: 'Two' },
          { id: 'three', title: 'Three' },
        ]}
        selectedId={tab.value}
        onSelect={(id) => (tab.value = id)}
      >
        <p>panel of {tab}</p>
      </Tabs>
      <LineChart
        label="Something grows"
        x={points.value.map((_, index) => 1_700_000_000 + index)}
        lines={[{ label: 'Things', values: points.value }]}
      />
      <dl class="tiles">
        <StatTile label="Count" value="12" note="of 20" tone="good" />
      </dl>
      <JsonViewer
        value={{
          text: '<img src=x onerror=alert(1)>',
          list: Array.from({ length: 250 }, (_, index) => index),
          nothing: null,
        }}
      />
    </main>
  );
}

render(<Gallery />, document.getElementById('app')!);
