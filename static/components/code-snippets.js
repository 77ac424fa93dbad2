/** A submission as a curl command and as Python code. */

/** @param {object} submission what the page would send */
export function curl(submission, origin = location.origin) {
  const body = JSON.stringify(submission, null, 2).replaceAll("'", "'\\''");
  return `curl ${origin}/api/experiments \\\n  -H 'Content-Type: application/json' \\\n  -d '${body}'`;
}

export function python(submission, origin = location.origin) {
  return [
    'from valleyscope.app.commands.client import Client',
    '',
    `client = Client("${origin}")`,
    `experiment = client.submit(${literal(submission)})`,
    'for event in client.events(experiment["id"]):',
    '    print(event.kind, event.data)',
    'print(client.experiment(experiment["id"])["sentence"])',
  ].join('\n');
}

/** A JSON value as Python writes it. */
function literal(value, indent = '') {
  const deeper = `${indent}    `;
  if (value === null) return 'None';
  if (value === true) return 'True';
  if (value === false) return 'False';
  if (Array.isArray(value)) return `[${value.map((entry) => literal(entry, deeper)).join(', ')}]`;
  if (typeof value === 'object') {
    const entries = Object.entries(value).map(([key, entry]) => `${JSON.stringify(key)}: ${literal(entry, deeper)}`);
    const short = `{${entries.join(', ')}}`;
    return short.length + indent.length < 88 && !short.includes('\n') ? short : `{\n${entries.map((entry) => `${deeper}${entry},\n`).join('')}${indent}}`;
  }
  return JSON.stringify(value);
}
