# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the other scripts: runs a command as a numbered stage with its output in a log, shows its progress, and
# shows the log only if it fails. A whole `make test` then reads as one page. Where WHERRY_STAGE_TIMES names a file, each
# stage adds its title and seconds there, with a tab between.

logs=build/logs
stages_planned=0
stages_started=0
failed_stages=()
# Lines of ctest, ninja and run-clang-tidy that tell of something that went well.
success='^ +Start +[0-9]+: |Test +#[0-9]+: .*( Passed |\*\*\*Skipped)|^\[[0-9]+/[0-9]+( .*s\] (Building|Linking) |\] clang-tidy [^:]+$)|\(Skipped\)$'
# [12/260 10.6s], as scripts/build has ninja write it.
ninja_status='^\[([0-9]+)/([0-9]+) ([0-9]+)\.[0-9]+s\]'
started_at=$SECONDS

# stage TITLE COMMAND...: returns the command's status, so that a caller can skip what depends on it.
stage() {
  local title=$1 begin=$SECONDS status=0
  shift
  stages_started=$((stages_started + 1))
  mkdir -p "$logs"
  log=$logs/$(tr ' /:,' '-' <<<"$title").log
  printf '[%d/%d] %s\n' "$stages_started" "$stages_planned" "$title"
  # Without the trap Ctrl-C would not reach it: bash has what runs in the background ignore that. Stages of its own, as in
  # tests of this script, are none of the caller's.
  (trap - INT && unset WHERRY_STAGE_TIMES WHERRY_LAST_BEGIN && "$@") >"$log" 2>&1 </dev/null &
  watch_log $! "$log" "$begin"
  wait $! || status=$?
  if [[ -n ${WHERRY_STAGE_TIMES:-} ]]; then printf '%s\t%d\n' "$title" $((SECONDS - begin)) >>"$WHERRY_STAGE_TIMES"; fi
  if ((status == 0)); then
    printf '      done in %d s\n' $((SECONDS - begin))
  else
    failed_stages+=("$title")
    show_failure "$title" "$status" $((SECONDS - begin))
  fi
  return "$status"
}

# left_out TITLE: whether it is too late to begin that: the time is past WHERRY_LAST_BEGIN, in seconds since 1970. .ci/run sets
# it, and lists at its end what was left out.
left_out() {
  if ((EPOCHSECONDS < ${WHERRY_LAST_BEGIN:-EPOCHSECONDS + 1})); then return 1; fi
  echo "      WARNING: left out, as it is late: $1" | tee -a "${WHERRY_LEFT_OUT:-/dev/null}"
}

# build_stages PRESET TARGET: configures, says how long building takes, and builds.
build_stages() {
  stage "configure" scripts/build "$1" --estimate "$2" || return
  printf '      %s\n' "$(tail -n 1 "$log")"
  stage "build" scripts/build "$1" --target "$2"
}

# Until the process ends, repeats what its log says last: on one line of a terminal, else as a sign of life now and then.
watch_log() {
  local pid=$1 log=$2 begin=$3 next=$((SECONDS + 20))
  while kill -0 "$pid" 2>/dev/null; do
    if [[ -t 1 ]]; then
      printf '\r\033[K      %4d s  %s' $((SECONDS - begin)) "$(last_news "$log" $(($(tput cols 2>/dev/null || echo 80) - 16)))"
    elif ((SECONDS >= next)); then
      printf '      %4d s  %s\n' $((SECONDS - begin)) "$(last_news "$log" 110)"
      next=$((SECONDS + 20))
    fi
    sleep 0.2
  done
  if [[ -t 1 ]]; then printf '\r\033[K'; fi
}

# last_news LOG COLUMNS: of a build, how far it is, though a compiler's warning may stand below that; else the last line.
last_news() {
  local lines=() news='' i
  mapfile -t lines < <(tail -n 40 "$1" | tr -d '\r\033')
  if ((${#lines[@]} > 0)); then news=${lines[-1]}; fi
  for ((i = ${#lines[@]} - 1; i >= 0; i--)); do
    if [[ ${lines[i]} =~ $ninja_status ]]; then
      if ((BASH_REMATCH[1] < BASH_REMATCH[2])); then news=$(build_progress "${BASH_REMATCH[@]:1:3}"); fi
      break
    fi
  done
  cut -c "1-$2" <<<"$news"
}

# build_progress BUILT ALL SECONDS: what remains is estimated by the pace so far, once there is one.
build_progress() {
  local left=''
  if (($1 > 0 && $3 >= 3)); then left=", $(about $(($3 * ($2 - $1) / $1))) left"; fi
  echo "building: $1 of $2$left"
}

about() {
  if (($1 < 100)); then echo "about $1 s"; else echo "about $((($1 + 30) / 60)) min"; fi
}

# The end of a long log holds the error; what went well in between is left out.
show_failure() {
  printf '      FAILED (status %d) after %d s; the end of %s:\n' "$2" "$3" "$log"
  grep -vE "$success" "$log" | tail -n 200 | sed 's/^/      | /'
}

# At the end: which stages failed, and how long it all took.
report_stages() {
  printf 'total time %d s\n' $((SECONDS - started_at))
  if ((${#failed_stages[@]})); then printf 'failed stage: %s\n' "${failed_stages[@]}"; fi
}
