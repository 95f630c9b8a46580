import { formatCount, formatCountOf } from '../../format/numbers.ts';
import type { Messages } from '../en/index.ts';

export const components: Messages['components'] = {
  cancel: 'Abbrechen',
  close: 'Schließen',
  copied: 'Kopiert',
  tryAgain: 'Erneut versuchen',
  actions: 'Aktionen',
  time: 'Zeit',
  slowServer: 'Der Server hat noch nicht geantwortet.',
  request: (id) => `Anfrage ${id}`,
  more: (count) => `${formatCount(count)} weitere`,
  moreCharacters: (count) => `${formatCountOf(count, 'weiteres Zeichen', 'weitere Zeichen')} zeigen`,
  filesToAdd: 'Dateien zum Hinzufügen',
  adding: (name) => `${name} wird hinzugefügt`,
  unchanged: (name) => `${name} ist unverändert.`,
  added: (name, numChunks) => `${name}: ${formatCountOf(numChunks, 'Abschnitt', 'Abschnitte')}.`,
};
