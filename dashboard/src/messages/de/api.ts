import type { Messages } from '../en/index.ts';

export const api: Messages['api'] = {
  unreachable: 'Der Server ist nicht erreichbar. Prüfen Sie, ob er läuft und ob dieses Gerät verbunden ist.',
  lostConnection: (reason) => `Die Verbindung zum Server ist abgebrochen: ${reason}`,
  incomplete: 'Die Übertragung endete vor dem Ende der Antwort.',
  ended: 'Der Server hat die Übertragung beendet.',
};
