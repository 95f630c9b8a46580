import type { Messages } from '../en/index.ts';

export const api: Messages['api'] = {
  unreachable: (reason) => `Der Server ist nicht erreichbar: ${reason}`,
  lostConnection: (reason) => `Die Verbindung zum Server ist abgebrochen: ${reason}`,
  incomplete: 'Die Übertragung endete vor dem Ende der Antwort.',
  ended: 'Der Server hat die Übertragung beendet.',
};
