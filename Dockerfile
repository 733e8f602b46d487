# The box as an image, for platforms where the image is the environment (docs/image.md):
#   docker build --build-arg BASE=<env.image of the profile> --tag <your registry>/box:<date> .
# The base brings torch and CUDA. It has no default, so that it is named by digest, where it is used.
ARG BASE
FROM ${BASE}

USER root
# The agent needs Python 3.10 or newer and nothing else. The host keys that the package makes are
# removed in the same layer: all boxes of an image would share them, with whoever can pull it.
RUN export DEBIAN_FRONTEND=noninteractive \
    && apt-get update \
    && apt-get install --yes --no-install-recommends openssh-server python3 rsync tmux \
    && rm -rf /etc/ssh/ssh_host_* /var/lib/apt/lists/* \
    && /usr/bin/python3 -c 'import sys; v = sys.version_info; \
        sys.exit(None if v >= (3, 10) else f"the base has Python {v[0]}.{v[1]}; expected >= 3.10")'

COPY --chmod=644 box/sshd.conf /etc/ssh/sshd_config.d/boxcar.conf
COPY --chmod=755 box/entrypoint.sh /usr/local/bin/boxcar-box

EXPOSE 22
# It runs any command that it is given, so that a platform's start command does not displace sshd.
ENTRYPOINT ["/usr/local/bin/boxcar-box"]
# Not the base's: a shell without a terminal ends at once, and the box with it.
CMD []
