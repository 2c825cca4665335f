#!/usr/bin/env bash
# Make the secrets of docker-compose.yml, each once: passwords, the two URLs that hold them, and a self-signed certificate.
# Replace tls_certificate and tls_key by the site's own. What is there is never written over.
#   ops/secrets.sh [FOLDER]     POSTGRES=host:port and REDIS=host:port name other servers than the two of docker-compose.yml
set -euo pipefail
umask 077
folder=${1:-"$(dirname "$0")/secrets"}
mkdir -p "$folder" && chmod 0700 "$folder"
cd "$folder"

new() { # NAME: a password of 40 characters from the kernel, without a line end
  [ -s "$1" ] || head -c 512 /dev/urandom | LC_ALL=C tr -dc 'A-Za-z0-9' | cut -c 1-40 | tr -d '\n' >"$1"
}
new postgres_password
new redis_password
[ -s quadgate_database_url ] || printf 'postgresql+psycopg://quadgate:%s@%s/quadgate' "$(<postgres_password)" "${POSTGRES:-postgres:5432}" >quadgate_database_url
[ -s quadgate_broker_url ] || printf 'redis://:%s@%s/0' "$(<redis_password)" "${REDIS:-redis:6379}" >quadgate_broker_url
if [ ! -s tls_key ] || [ ! -s tls_certificate ]; then
  openssl req -x509 -newkey rsa:3072 -nodes -days 825 -subj "/CN=${TLS_NAME:-localhost}" \
    -addext "subjectAltName=DNS:${TLS_NAME:-localhost},IP:127.0.0.1" -keyout tls_key -out tls_certificate 2>/dev/null
fi
chmod 0444 ./* # the folder is private; inside a container each file is read by a user of its own
printf '%s:' "$PWD"
printf ' %s' ./*
echo
